// How the server is: figures as of now.

import { get } from "./api.js";
import { el, facts, fill } from "./dom.js";
import { count, duration, size } from "./format.js";
import { watch } from "./live.js";

export function healthView(place, me) {
  const box = el("div", { class: "page" }, el("p", null, "…"));
  fill(place, el("h1", { class: "unseen" }, "Health"), box);
  let last = 0;
  return watch(async (now, error) => {
    if (error) {
      fill(box, el("p", { class: "notice bad" }, error.message));
      return;
    }
    if (Date.now() - last < 2000) return;
    last = Date.now();
    let told;
    try {
      told = await get("health");
    } catch (trouble) {
      fill(box, el("p", { class: "notice bad" }, trouble.message));
      return;
    }
    const running = now.operations.filter((one) => one.state === "RUNNING").length;
    fill(box,
      el("h1", null, el("span", { class: `state ${told.problem ? "failed" : "finished"}` }, told.problem ? `Not ready: ${told.problem}` : "Ready")),
      el("h2", null, "Server"), facts([["Version", me.version], ["Up for", duration(told.uptime_seconds * 1000)], ["Second engine", told.spark ? "Spark" : "none"]]),
      el("h2", null, "Work"), facts([
        ["Slots", count(told.slots)], ["Engine processes", `${told.workers.busy} busy, ${told.workers.idle} idle, ${told.workers.starting} starting`], ["Running", count(running)],
        ["Queued", count(now.operations.length - running)], ["Sessions", count(now.sessions.length)],
      ]),
      el("h2", null, "History"), told.history ? facts([["Recorded since the start", count(told.history.recorded)], ["Lost", count(told.history.lost)],
        ["Store", el("span", { class: `state ${told.history.written ? "finished" : "failed"}` }, told.history.written ? "written" : "cannot be written: what comes waits in memory, see the log")]]) : el("p", null, "Off (--history)."),
      el("h2", null, "Disks"), facts(told.disks.map((disk) => [disk.of, el("span", null, `${size(disk.free_bytes)} free of ${size(disk.total_bytes)} `, el("meter", { min: 0, max: disk.total_bytes, high: disk.total_bytes * 0.9, value: disk.total_bytes - disk.free_bytes, "aria-label": `${disk.of}: used` }))])));
  });
}
