// What runs and what ran, the newest first.

import { get, post, segment } from "./api.js";
import { agreed, button, el, fill, notice, released } from "./dom.js";
import { count, duration, moment, oneLine, size, stateOf } from "./format.js";
import { lookNow, watch } from "./live.js";
import { Windowed } from "./windowed.js";

const PAGE = 500, AHEAD = 200, NEWS = 20;
const PHASES = [["queue", "waited"], ["compile", "compiled"], ["run", "ran"], ["fetch", "fetched"]];

// Milliseconds of each phase of a statement, running or ended.
export function phases(one) {
  if (one.ended_ms === undefined) {
    const waited = one.waiting_at_capacity_duration_ms;
    return { queue: waited, compile: 0, run: Math.max(0, one.duration_ms - waited), fetch: 0 };
  }
  const known = one.queue_ms + (one.compile_ms || 0) + (one.execute_ms || 0);
  const rest = Math.max(0, one.total_ms - known); // of what failed before it was planned
  return { queue: one.queue_ms, compile: (one.compile_ms || 0) + (one.execute_ms === null ? rest : 0), run: one.execute_ms || 0, fetch: one.fetch_ms || 0 };
}

function whole(one) {
  return Object.values(phases(one)).reduce((a, b) => a + b, 0);
}

// Its phases as parts of a bar. Beside others its length is the magnitude of its time: most of them are far shorter than the longest.
export function bars(one, longest = 0) {
  const spent = phases(one), total = Math.max(whole(one), 0.001);
  const share = longest > total ? Math.max(0.06, Math.log1p(total) / Math.log1p(longest)) : 1;
  const told = PHASES.filter(([name]) => spent[name] > 0).map(([name, word]) => `${word} ${duration(spent[name])}`).join(", ");
  return el("span", { class: "phases", role: "img", "aria-label": told || "no time", title: told }, PHASES.map(([name]) => {
    const bar = el("i", { class: name });
    bar.style.width = `${(100 * share * spent[name]) / total}%`;
    return bar;
  }));
}

// What the colours of a statement's bar stand for, with the time of each.
export function phaseLegend(one) {
  const spent = phases(one);
  return el("p", { class: "legend", "aria-hidden": "true" }, PHASES.filter(([name]) => spent[name] > 0).map(([name, word]) => el("span", { class: name }, `${word} ${duration(spent[name])}`)));
}

export function stateMark(state) {
  const [word, kind] = stateOf(state);
  return el("span", { class: `state ${kind}` }, word);
}

export async function kill(identifier) {
  if (!(await agreed("Kill this statement?", "Kill"))) return;
  try {
    await post(`statements/${segment(identifier)}/kill`);
    notice("Killed.");
  } catch (error) {
    notice(error.message, "bad");
  }
  lookNow();
}

const filter = { status: "", text: "", user: "", since: "", least_ms: "" }; // stays while other views are looked at

const isLive = () => filter.status === "RUNNING";

const HEAD = ["State", "Statement", "User", "Program", "Engine", "Time", "", "Rows", "Bytes", "Spilled", "Started"];
const CLASSES = ["c-state", "c-text", "c-user", "c-client", "c-engine", "c-time", "c-bar", "c-rows", "c-bytes", "c-spill", "c-start"];

function cells(values) {
  return values.map((value, i) => el("span", { class: CLASSES[i], role: "cell" }, value));
}

export function statementsView(place, me) {
  let ended = [], more = true, loading = false, failed = false, recorded = null, running = [], rows = [], generation = 0, longest = 0;

  const list = new Windowed({
    height: 34, label: "Statements", columns: HEAD.length,
    head: el("div", { role: "row", class: "grid-row head" }, HEAD.map((name, i) => el("span", { class: CLASSES[i], role: "columnheader" }, name || el("span", { class: "unseen" }, "Phases")))),
    row: (i) => draw(rows[i]),
    open: (i) => { location.hash = `#/statements/${segment(rows[i].statement_id)}`; },
    near: (last) => { if (more && !loading && !failed && last > rows.length - AHEAD && !isLive()) load(false); },
  });
  const figures = el("p", { class: "figures", "aria-live": "off" });
  const trouble = el("p", { class: "notice bad", hidden: true });
  const nothing = el("p", { class: "hint nothing", hidden: true });

  function draw(one) {
    const running_ = one.ended_ms === undefined;
    const text = oneLine(one.text ?? one.statement_text) || "(no text)";
    const client = one.client ?? one.client_application ?? "";
    return el("div", { class: `grid-row${running_ ? " is-running" : ""}` }, cells([
      stateMark(one.state),
      el("a", { href: `#/statements/${segment(one.statement_id)}`, tabindex: -1, title: text, dir: "ltr" }, el("bdi", null, text)),
      el("bdi", null, oneLine(one.user, 80)),
      el("bdi", { title: oneLine(client) }, oneLine(client.split(/[ (]/)[0] || "–", 60)),
      el("span", { title: one.reason ? oneLine(one.reason) : undefined }, one.engine || "–"),
      duration(running_ ? one.duration_ms : one.total_ms),
      bars(one, longest),
      stateOf(one.state)[1] === "failed" ? "–" : count(running_ ? one.produced_rows : one.rows),
      stateOf(one.state)[1] === "failed" ? "–" : size(one.result_bytes),
      one.spilled_bytes ? size(one.spilled_bytes) : "–",
      moment(running_ ? one.start_time : one.started_ms),
    ]));
  }

  function compose() {
    const known = new Set(ended.map((one) => one.statement_id));
    const wanted = running.filter((one) => one.statement_text && !known.has(one.statement_id) && matches(one));
    rows = [...wanted, ...(isLive() ? [] : ended)];
    longest = rows.reduce((most, one) => Math.max(most, whole(one)), 0);
    list.setCount(rows.length);
    nothing.hidden = rows.length > 0 || loading;
    nothing.textContent = isFiltered() ? "No statement is like that." : !me.history ? "Nothing runs. What has ended is not kept: the history is off (--history)." : "No statement has been run yet: connect a program, or write one in the editor.";
    const shown = `${running.filter((one) => one.statement_text).length} running or queued, ${count(ended.length)}${more ? "+" : ""} ended`;
    figures.textContent = me.history ? shown : `${shown} (the history is off: --history)`;
  }

  function matches(one) {
    return (!filter.status || isLive()) && (!filter.user || one.user === filter.user) && (!filter.least_ms || one.duration_ms >= filter.least_ms) &&
      (!filter.text || one.statement_text.toLowerCase().includes(filter.text.toLowerCase()));
  }

  // Some statements that have ended: those behind the last one, or `newest` of the newest.
  function ask(newest) {
    const last = newest ? null : ended[ended.length - 1];
    const query = { max_results: newest || PAGE, status: isLive() ? "" : filter.status, text: filter.text, user: filter.user, since_ms: since(), least_ms: filter.least_ms };
    return get("statements", last ? { ...query, before_ms: last.started_ms, before_id: last.id } : query);
  }

  // Where the oldest of what was found is among those that are known; -1 if it is not.
  function reached(found) {
    const oldest = found.statements[found.statements.length - 1];
    return oldest ? ended.findIndex((one) => one.id === oldest.id) : -1;
  }

  async function load(anew) {
    if (loading && !anew) return;
    loading = true;
    const mine = ++generation;
    try {
      let found = await ask(anew ? (ended.length ? NEWS : PAGE) : 0);
      if (anew && ended.length && reached(found) < 0 && mine === generation) found = await ask(PAGE); // much has ended meanwhile
      await released();
      if (mine !== generation) return;
      const at = anew ? reached(found) : -1;
      if (at >= 0) ended = [...found.statements, ...ended.slice(at + 1)]; // what was loaded before stays behind the newest
      else {
        ended = anew ? found.statements : [...ended, ...found.statements];
        more = found.more;
      }
      trouble.hidden = true;
      failed = false;
      loading = false;
      compose();
    } catch (error) {
      trouble.hidden = false;
      trouble.textContent = error.message;
      failed = true; // scrolling would ask again and again
      recorded = null; // the next look at what runs does
    } finally {
      if (mine === generation) loading = false;
    }
  }

  // Milliseconds since the epoch of the oldest that are wanted.
  const since = () => (filter.since ? Date.now() - Number(filter.since) * 60000 : "");
  const isFiltered = () => Object.values(filter).some(Boolean);

  function changed() {
    ended = [];
    more = true;
    reset.hidden = !isFiltered();
    load(true);
  }

  // A choice of one of some values of a filter.
  function choice(name, key, values) {
    return el("label", null, `${name} `, el("select", { name: key, onchange: (event) => { filter[key] = event.target.value; changed(); } },
      values.map(([value, shown]) => el("option", { value, selected: filter[key] === value }, shown))));
  }

  let typing = null;
  const reset = button("Reset", () => {
    Object.keys(filter).forEach((key) => { filter[key] = ""; });
    controls.querySelectorAll("select, input").forEach((field) => { field.value = ""; });
    changed();
    list.element.focus();
  }, { hidden: !isFiltered(), title: "All statements" });
  const controls = el("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); changed(); } },
    choice("State", "status", [["", "all"], ["RUNNING", "running and queued"], ["FINISHED", "finished"], ["FAILED", "failed"], ["CANCELED", "cancelled"]]),
    choice("Since", "since", [["", "ever"], ["15", "15 minutes"], ["60", "an hour"], ["1440", "a day"], ["10080", "a week"]]),
    choice("Took", "least_ms", [["", "any time"], ["100", "0.1 s and more"], ["1000", "1 s and more"], ["10000", "10 s and more"], ["60000", "a minute and more"]]),
    el("label", null, "Text ", el("input", { type: "search", name: "text", value: filter.text, placeholder: "part of a statement", oninput: (event) => {
      filter.text = event.target.value;
      clearTimeout(typing);
      typing = setTimeout(changed, 300);
    } })),
    me.administrator && el("label", null, "User ", el("input", { type: "search", name: "user", value: filter.user, placeholder: "all", onchange: (event) => { filter.user = event.target.value.trim(); changed(); } })),
    reset,
    figures);

  fill(place, el("h1", { class: "unseen" }, "Statements"), controls, trouble, nothing, list.element,
    el("p", { class: "legend", "aria-hidden": "true" }, PHASES.map(([name, word]) => el("span", { class: name }, word)), el("small", null, "the longer the bar, the longer it took: by magnitudes")));
  list.element.classList.add("fills");
  const end = watch((now, error) => {
    trouble.hidden = !error;
    if (error) {
      trouble.textContent = error.message;
      return;
    }
    running = [...now.operations].sort((a, b) => b.start_time - a.start_time);
    if (recorded !== now.recorded) {
      recorded = now.recorded;
      load(true);
    } else if (running.length || rows.some((one) => one.ended_ms === undefined)) compose();
  });
  list.element.focus({ preventScroll: true });
  return end;
}

