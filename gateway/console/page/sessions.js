// The sessions that are open: whose, by which program, where they stand, what they have set.

import { el, fill } from "./dom.js";
import { count, duration, seen } from "./format.js";
import { watch } from "./live.js";

export function sessionsView(place) {
  const body = el("tbody");
  const figures = el("p", { class: "figures" });
  fill(place, el("h1", null, "Sessions"), figures, el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Sessions" },
    el("table", { class: "plain-table" }, el("thead", null, el("tr", null, ["User", "Program", "Catalog", "Schema", "Statements", "Idle", "Settings", "Session"].map((name) => el("th", { scope: "col", class: /Statements|Idle/.test(name) ? "number" : undefined }, name)))), body)));
  let shown = "";
  return watch((now, error) => {
    if (error) {
      figures.textContent = error.message;
      return;
    }
    figures.textContent = `${count(now.sessions.length)} open`;
    const open = new Set([...body.querySelectorAll("details[open]")].map((one) => one.dataset.session));
    const key = JSON.stringify(now.sessions.map(({ idle_ms, ...rest }) => [rest, Math.round(idle_ms / 5000)]));
    if (key === shown || body.contains(document.activeElement)) return;
    shown = key;
    fill(body, now.sessions.length ? [...now.sessions].sort((a, b) => b.operations - a.operations || a.idle_ms - b.idle_ms).slice(0, 1000).map((one) => el("tr", null,
      el("td", { class: one.user.length < 30 ? "whole" : undefined }, el("bdi", null, seen(one.user))), el("td", null, el("bdi", null, seen(one.client_application))), el("td", null, el("bdi", null, seen(one.current_catalog))), el("td", null, el("bdi", null, seen(one.current_schema))),
      el("td", { class: "number" }, count(one.operations)), el("td", { class: "number" }, duration(one.idle_ms)),
      el("td", null, Object.keys(one.settings).length ? el("details", { "data-session": one.session_id, open: open.has(one.session_id) }, el("summary", null, `${Object.keys(one.settings).length}`), Object.entries(one.settings).map(([name, value]) => el("div", null, el("code", null, seen(name)), " = ", el("bdi", null, seen(value))))) : "–"),
      el("td", { class: "whole" }, el("code", null, one.session_id)))) : el("tr", null, el("td", { colspan: 8 }, "No session is open.")));
  });
}
