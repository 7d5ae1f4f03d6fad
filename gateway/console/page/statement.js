// One statement in full.

import { get, segment } from "./api.js";
import { answerTable, button, copied, el, facts, fill, released } from "./dom.js";
import { count, duration, oneLine, seen, size, stateOf, wholeMoment } from "./format.js";
import { highlighted } from "./highlight.js";
import { watch } from "./live.js";
import { kept, picture, planView } from "./plan.js";
import { small } from "./session.js";
import { bars, kill, phaseLegend, stateMark } from "./statements.js";
import { toEditor } from "./tabs.js";

// Where in the text the piece is that is at fault: the server counts characters, pages units of UTF-16.
function mistake(told) {
  if (told.error_at === null || told.error_at === undefined) return null;
  const before = [...told.text].slice(0, told.error_at).join("").length;
  const length = [...told.text.slice(before)].slice(0, Math.max(1, told.error_to - told.error_at)).join("").length;
  return length ? [before, before + length] : null;
}

function placeOf(text, at) {
  const before = text.slice(0, at);
  return `line ${before.split("\n").length}, position ${[...before.slice(before.lastIndexOf("\n") + 1)].length + 1}`;
}

function errorBox(told) {
  if (!told.condition) return null;
  const wrong = mistake(told);
  return el("section", { class: "error-box", "aria-label": "Error" },
    el("h2", null, seen(told.condition), told.sqlstate && el("small", null, ` SQLSTATE ${seen(told.sqlstate)}`)),
    told.message ? el("pre", { dir: "auto" }, seen(told.message)) : el("p", null, "The history keeps messages with --log-sql only."),
    wrong && !told.message?.includes("== SQL (") && el("p", null, `It is about what is marked in the text below: ${placeOf(told.text, wrong[0])}.`));
}

function textBox(text, mark = null) {
  const cut = text.length > 100_000 ? text.slice(0, 100_000) : text;
  return el("section", null, el("h2", null, "Text"),
    el("pre", { class: "sql", dir: "ltr", tabindex: 0, "aria-label": "Text of the statement" }, highlighted(cut, false, mark), cut !== text && " …"),
    el("p", { class: "buttons" }, button("Copy", () => copied(text)), button("Open in the editor", () => toEditor(text))));
}

// The plan that was run, where it was kept; and how the statement would be planned now, if it only reads.
function planBox(told) {
  const root = kept(told.details.operators);
  const place = el("div");
  const found = [root && picture(root)];
  const why = { datafusion: "The plan is kept of statements that run for more than 0.2 s.", spark: "The plan is kept of statements that run for more than 0.2 s and of which Spark tells one." }[told.engine];
  if (!root && why && told.state === "FINISHED") found.push(el("p", { class: "hint" }, why));
  if (told.statement_type === "SELECT") {
    if (told.text.includes("?")) found.push(el("p", { class: "hint" }, "To see how it would be run now, open the text in the editor, put its literals in, which the history does not keep (without --log-sql), and choose Explain or Analyze."));
    else {
      found.push(el("p", { class: "buttons" },
        button("Explain", () => ask("EXPLAIN "), { title: "How it would be run now" }), button("Analyze", () => ask("EXPLAIN ANALYZE "), { title: "Runs it again and measures each operator" })), place);
    }
  }
  async function ask(prefix) {
    fill(place, el("p", null, "…"));
    try {
      fill(place, planView((await small(prefix + told.text, 1)).rows[0][0]));
    } catch (error) {
      fill(place, el("pre", { class: "notice bad" }, seen(error.message)));
    }
  }
  return found.some(Boolean) ? el("section", null, el("h2", null, "Plan"), found) : null;
}

function tableLink([catalog, schema, table]) {
  return el("a", { href: `#/catalog/${[catalog, schema, table].map(segment).join("/")}` }, el("bdi", null, oneLine([catalog, schema, table].join("."), 300)));
}

// What it read and wrote, and how each table was read.
function tablesBox({ read = [], written = [], scans = [] }) {
  if (!read.length && !written.length) return null;
  const list = (name, tables) => tables.length ? [el("h3", null, name), el("ul", { class: "links" }, tables.map((one) => el("li", null, tableLink(one))))] : null;
  return el("section", { "aria-label": "Tables" }, el("h2", null, "Tables"), list("Written", written), list("Read", read),
    scans.length ? answerTable({ columns: ["Table", "Version", "Files", "Bytes", "Columns", "Reader", "Why"], rows: scans.map(([table, version, reader, why, some, all, bytes, columns]) => [table, version, `${count(some)} of ${count(all)}`, size(bytes), columns, reader, why]) }, "How each table was read") : null);
}

function parametersBox(parameters) {
  if (!parameters?.length) return null;
  const kept_ = "value" in parameters[0];
  return el("section", { "aria-label": "Parameters" }, el("h2", null, "Parameters"),
    answerTable({ columns: kept_ ? ["Name", "Type", "Value"] : ["Name", "Type"], rows: parameters.map((one, i) => [one.name ?? `${i + 1}.`, one.type, ...(kept_ ? [one.value] : [])]) }, "Parameters"),
    !kept_ && el("p", { class: "hint" }, "The history keeps values with --log-sql only."));
}

function ended(told) {
  const pruned = told.files_total === null || told.files_kept === null ? null : told.files_total - told.files_kept;
  return [
    el("h1", null, stateMark(told.state), " ", told.statement_type ? seen(told.statement_type) : "Statement"),
    el("div", { class: "wide-bar" }, bars(told), phaseLegend(told)),
    errorBox(told),
    textBox(told.text, mistake(told)),
    el("section", null, el("h2", null, "Time"), facts([
      ["Total", duration(told.total_ms)], ["Waiting for a slot", duration(told.queue_ms)], ["Reading the text", told.parse_ms === null ? null : duration(told.parse_ms)],
      ["Compiling", told.compile_ms === null ? null : duration(told.compile_ms)], ["Running", told.execute_ms === null ? null : duration(told.execute_ms)], ["Fetching", told.fetch_ms === null ? null : duration(told.fetch_ms)],
      ["Started", wholeMoment(told.started_ms)], ["Ended", wholeMoment(told.ended_ms)],
    ])),
    el("section", null, el("h2", null, "What it did"), facts([
      ["Engine", told.engine && seen(told.engine)], ["Rows given", count(told.rows)], ["Bytes given", size(told.result_bytes)],
      ["Rows written", told.written_rows === null ? null : count(told.written_rows)],
      ["Files written", told.details.files_written ? count(told.details.files_written) : null], ["Bytes written", told.details.bytes_written ? size(told.details.bytes_written) : null], ["Bytes to read", told.read_bytes === null ? null : size(told.read_bytes)],
      ["Files read", told.files_kept === null ? null : count(told.files_kept)], ["Files pruned", pruned === null ? null : `${count(pruned)} of ${count(told.files_total)}`],
      ["Spilled", told.spilled_bytes === null ? null : size(told.spilled_bytes)], ["From a kept answer", !told.cached ? null : (told.origin_id ? el("a", { href: `#/statements/${segment(told.origin_id)}` }, "of this statement") : "yes")],
      ["Why", told.reason && seen(told.reason), true],
    ])),
    parametersBox(told.details.parameters),
    tablesBox(told.details),
    planBox(told),
    who(told),
  ];
}

function who(told) {
  return el("section", null, el("h2", null, "Who"), facts([
    ["User", el("bdi", null, seen(told.user))], ["Program", el("bdi", null, seen(told.client ?? told.client_application ?? ""))], ["Session", el("code", null, seen(told.session_id))], ["Statement", el("code", null, seen(told.statement_id))],
  ]));
}

function running(told) {
  const share = told.progress === null ? null : Math.round(told.progress * 100);
  return [
    el("h1", null, stateMark(told.state), " ", told.statement_type ? seen(told.statement_type) : stateOf(told.state)[0] === "Queued" ? "Statement in the queue" : "Statement"),
    el("div", { class: "wide-bar" }, bars(told), phaseLegend(told)),
    el("p", { class: "buttons" }, button("Kill", () => kill(told.statement_id), { class: "danger" })),
    share !== null && el("progress", { max: 100, value: share, "aria-label": "Progress" }),
    textBox(told.statement_text),
    el("section", null, el("h2", null, "So far"), facts([
      ["Time", duration(told.duration_ms)], ["Waiting for a slot", duration(told.waiting_at_capacity_duration_ms)], ["Stage", told.progress_text && seen(told.progress_text)],
      ["Engine", told.engine && seen(told.engine)], ["Rows", count(told.produced_rows)], ["Bytes", size(told.result_bytes)], ["Started", wholeMoment(told.start_time)],
      ["Why", told.reason && seen(told.reason), true],
    ])),
    who(told),
  ];
}

export function statementView(place, me, identifier) {
  const box = el("article", { class: "page" }, el("p", null, "…"));
  fill(place, el("p", { class: "crumbs" }, el("a", { href: "#/statements" }, "Statements"), " / ", el("code", null, seen(identifier.slice(0, 64)))), box);
  let over = false, asking = false;
  async function look() {
    if (over || asking) return;
    asking = true;
    try {
      const found = await get(`statements/${segment(identifier)}`);
      over = Boolean(found.ended);
      await released();
      const told = found.ended ? ended(found.ended) : running(found.running);
      const focused = box.contains(document.activeElement) && document.activeElement.textContent;
      fill(box, told);
      if (focused) [...box.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
    } catch (error) {
      if (error.status === 404) {
        over = true;
        fill(box, el("h1", null, "Not known"), el("p", null, "There is no such statement, or it is somebody else's."));
      } else fill(box, el("p", { class: "notice bad" }, error.message));
    } finally {
      asking = false;
    }
  }
  return watch((now, error) => { if (!error) look(); });
}
