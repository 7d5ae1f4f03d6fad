// Pipelines as their runs have recorded them in the warehouse: graph, runs, tables, expectations.

import { segment } from "./api.js";
import { el, fill, svg } from "./dom.js";
import { count, duration, oneLine, seen } from "./format.js";
import { small } from "./session.js";

const RUNS = 50, WIDE = 210, TALL = 46, GAP_X = 56, GAP_Y = 16, MOST = 300;
const GOOD = { COMPLETED: "finished", FAILED: "failed", EXPECTATION_FAILED: "failed", CRASHED: "failed", CANCELED: "canceled" };
const ELSEWHERE = "elsewhere";

function address(...parts) {
  return `#/${["pipelines", ...parts].map(segment).join("/")}`;
}

function text(value) {
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

async function rows(statement) {
  const { columns, rows: found } = await small(statement, 2000);
  return found.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));
}

// Rows of a table that older runs may not have made.
async function rowsOrNone(statement) {
  try {
    return await rows(statement);
  } catch (error) {
    if (/TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND/.test(error.message)) return null;
    throw error;
  }
}

function stateMark(written) {
  const state = String(written ?? "unknown"); // whoever writes into the table may have left it out
  return el("span", { class: `state ${Object.hasOwn(GOOD, state) ? GOOD[state] : ""}` }, seen(state.toLowerCase().replaceAll("_", " ")));
}

function table(label, names, lines) {
  return el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": label }, el("table", { class: "plain-table" },
    el("thead", null, el("tr", null, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", null, lines.length ? lines.map((line) => el("tr", null, line.map((value) => el("td", null, value)))) : el("tr", null, el("td", { colspan: names.length }, "None.")))));
}

function number(value) {
  return value === null || value === undefined ? "–" : count(Number(value));
}

function when(value) {
  return value === null || value === undefined ? "–" : seen(String(value).slice(0, 19));
}

function lasted(one) {
  const at = (value) => Date.parse(String(value).replace(" ", "T").replace(/Z?$/, "Z"));
  const ms = at(one.ended) - at(one.started);
  return Number.isFinite(ms) && one.ended !== null ? duration(ms) : "–";
}

function tableLink(name) {
  const [schema, ...rest] = name.split(".");
  return rest.length ? el("a", { href: `#/catalog/main/${segment(schema)}/${segment(rest.join("."))}` }, el("bdi", null, oneLine(name, 200))) : el("bdi", null, oneLine(name, 200));
}

// Boxes from left to right, each one to the right of all that it reads.
export function graphView(nodes, states) {
  const all = new Map(nodes.map((one) => [one.name, { ...one, depth: 0 }]));
  for (const one of nodes) for (const name of one.reads) if (!all.has(name)) all.set(name, { name, kind: ELSEWHERE, reads: [], depth: 0 });
  if (all.size > MOST) return el("p", { class: "hint" }, `${count(all.size)} tables and views are too many for a picture.`);
  for (let turn = 0, moved = true; moved && turn < all.size; turn += 1) {
    moved = false;
    for (const one of all.values()) {
      for (const name of one.reads) {
        const least = all.get(name).depth + 1;
        if (name !== one.name && one.depth < least && least < all.size) {
          one.depth = least;
          moved = true;
        }
      }
    }
  }
  const columns = [];
  for (const one of all.values()) (columns[one.depth] ??= []).push(one);
  const tallest = Math.max(...columns.map((column) => column.length));
  const top = GAP_Y + 30; // for lines above boxes that stand in between
  const high = tallest * (TALL + GAP_Y) + top;
  columns.forEach((column, x) => column.forEach((one, y) => {
    one.x = 10 + x * (WIDE + GAP_X);
    one.y = top + y * (TALL + GAP_Y) + ((tallest - column.length) * (TALL + GAP_Y)) / 2;
  }));
  const edges = [...all.values()].flatMap((one) => one.reads.filter((name) => name !== one.name).map((name) => {
    const from = all.get(name), x = from.x + WIDE, y = from.y + TALL / 2, to = one.y + TALL / 2;
    const bend = one.depth > from.depth + 1 ? TALL + GAP_Y : 0, out = bend ? GAP_X * 2 : GAP_X / 2;
    return svg("path", { class: "edge", d: `M${x} ${y} C${x + out} ${y - bend} ${one.x - out} ${to - bend} ${one.x} ${to}` });
  }));
  const boxes = [...all.values()].map((one) => {
    const told = [one.kind, states.get(one.name)?.toLowerCase()].filter(Boolean).join(", ");
    const shape = svg("g", { transform: `translate(${one.x} ${one.y})` }, svg("title", null, seen(`${one.name} (${told})`)),
      svg("rect", { class: `box${one.kind === ELSEWHERE ? " source" : ""}`, width: WIDE, height: TALL, rx: 6 }),
      svg("text", { x: 10, y: 19 }, oneLine(one.name, 28)), " ", svg("text", { x: 10, y: 36, class: "kind" }, oneLine(told, 32)));
    const [schema, ...rest] = one.name.split(".");
    return /table|view/.test(one.kind) && !/^(temporary )?view$/.test(one.kind) && rest.length
      ? svg("a", { href: `#/catalog/main/${segment(schema)}/${segment(rest.join("."))}`, "aria-label": `${oneLine(one.name, 28)} ${oneLine(told, 32)}` }, shape) : shape;
  });
  const wide = columns.length * (WIDE + GAP_X) - GAP_X + 20;
  return el("div", { class: "plan-scroll graph", tabindex: 0, role: "group", "aria-label": `Graph of ${all.size} tables and views` }, svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}` }, edges, boxes));
}

async function runView(place, run) {
  const of = `WHERE run_id = ${text(run.run_id)}`;
  const [tables, expectations, graph] = await Promise.all([
    rowsOrNone(`SELECT * FROM main.pipelines.tables ${of} ORDER BY table_name`),
    rowsOrNone(`SELECT * FROM main.pipelines.expectations ${of} ORDER BY table_name, name`),
    rowsOrNone(`SELECT name, kind, to_json(reads) AS reads FROM main.pipelines.graph ${of}`),
  ]);
  const states = new Map((tables || []).map((one) => [one.table_name, one.state]));
  const nodes = (graph || []).map((one) => ({ ...one, reads: JSON.parse(one.reads || "[]") }));
  fill(place,
    el("h2", null, "Run ", el("code", null, seen(run.run_id))), el("p", null, stateMark(run.state), ` ${when(run.started)} UTC, ${lasted(run)}`),
    run.message && el("pre", { class: "notice bad" }, seen(run.message)),
    el("h3", null, "Graph"), nodes.length ? graphView(nodes, states) : el("p", { class: "hint" }, "This run has not recorded its graph: it failed before, or is of an older version. ", el("code", null, "gateway pipeline graph"), " draws it."),
    el("h3", null, "Tables"), table("Tables of the run", ["Table", "Kind", "State", "Rows in", "Rows out", "Version", "Time", "Error"], (tables || []).map((one) => [tableLink(one.table_name), seen(one.kind), stateMark(one.state), number(one.rows_in), number(one.rows_out), number(one.version_after), lasted(one), oneLine(one.error ?? "", 300)])),
    el("h3", null, "Expectations"), table("Expectations of the run", ["Table", "Expectation", "Predicate", "Action", "Failing", "Of rows", "Failing added", "Error"], (expectations || []).map((one) => [tableLink(one.table_name), el("bdi", null, oneLine(one.name, 120)), el("code", null, oneLine(one.predicate, 200)), seen(one.action), number(one.failing_rows), number(one.checked_rows), number(one.failing_rows_added), oneLine(one.error ?? "", 300)])));
}

export async function pipelinesView(place, me, [wanted, identifier]) {
  const box = el("article", { class: "page" }, el("h1", null, "Pipelines"), el("p", null, "…"));
  fill(place, box);
  let runs;
  try {
    // cast in UTC: the page's session may have another time zone
    const time = (name) => `date_format(to_utc_timestamp(${name}, current_timezone()), 'yyyy-MM-dd HH:mm:ss') AS ${name}`;
    runs = await rowsOrNone(`SELECT run_id, pipeline, ${time("started")}, ${time("ended")}, state, message FROM main.pipelines.runs ORDER BY run_id DESC LIMIT 1000`);
  } catch (error) {
    fill(box, el("h1", null, "Pipelines"), el("pre", { class: "notice bad" }, seen(error.message)));
    return null;
  }
  if (!runs?.length) {
    fill(box, el("h1", null, "Pipelines"), el("p", { class: "hint" }, "No pipeline has run into this warehouse. ", el("code", null, "gateway pipeline run DIR --warehouse …"), " records its runs in main.pipelines, and they are shown here."));
    return null;
  }
  const names = [...new Set(runs.map((one) => one.pipeline))];
  const chosen = names.includes(wanted) ? wanted : names[0];
  const mine = runs.filter((one) => one.pipeline === chosen);
  const run = mine.find((one) => one.run_id === identifier) || mine[0];
  const detail = el("section", { "aria-label": "Run" }, el("p", null, "…"));
  fill(box, el("h1", null, "Pipelines"),
    el("ul", { class: "names" }, names.map((name) => el("li", null, el("a", { href: address(name), "aria-current": name === chosen ? "true" : undefined }, el("bdi", null, oneLine(name, 120))), " ", stateMark(runs.find((one) => one.pipeline === name).state)))),
    el("h2", null, "Runs of ", el("bdi", null, oneLine(chosen, 120))),
    table("Runs", ["Started (UTC)", "State", "Time", "Message", "Run"], mine.slice(0, RUNS).map((one) => [when(one.started), stateMark(one.state), lasted(one), oneLine(one.message ?? "", 200), el("a", { href: address(chosen, one.run_id), "aria-current": one === run ? "true" : undefined }, el("code", null, seen(one.run_id)))])),
    mine.length > RUNS && el("p", { class: "hint" }, `The last ${RUNS} of ${count(mine.length)} runs.`), detail);
  try {
    await runView(detail, run);
  } catch (error) {
    fill(detail, el("pre", { class: "notice bad" }, seen(error.message)));
  }
  return null;
}
