// A result: its rows in blocks, fetched when they come into sight; shown as a table; saved as a file.

import { bytes, get, segment } from "./api.js";
import { button, copied, el, facts, fill, notice, save } from "./dom.js";
import { oneLine, seen } from "./format.js";
import { Windowed } from "./windowed.js";

const BLOCK = 500, MOST = 2000, KEPT = 60, ROW = 27;
const NUMERIC = /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)/;

export class Result {
  constructor(identifier, manifest) {
    this.identifier = identifier;
    this.columns = manifest.schema.columns || [];
    this.total = manifest.total_row_count;
    this.parts = manifest.total_chunk_count;
    this.truncated = manifest.truncated;
    this.blocks = new Map();
    this.asked = new Map();
    this.changed = () => {};
  }

  isNumeric(column) {
    return NUMERIC.test(this.columns[column].type_text);
  }

  row(index) {
    return this.blocks.get(Math.floor(index / BLOCK))?.[index % BLOCK];
  }

  // Fetches the blocks of some rows, unless they are there; the others are let go of when there are too many.
  async need(from, to) {
    const wanted = [];
    for (let block = Math.floor(from / BLOCK); block * BLOCK < Math.min(to, this.total); block++) wanted.push(block);
    await Promise.all(wanted.map((block) => this.load(block)));
  }

  load(block) {
    if (this.blocks.has(block)) return null;
    if (!this.asked.has(block)) {
      this.asked.set(block, this.fetch(block * BLOCK, Math.min(BLOCK, this.total - block * BLOCK)).then((rows) => {
        this.blocks.set(block, rows);
        for (const old of this.blocks.keys()) {
          if (this.blocks.size <= KEPT) break;
          if (old !== block) this.blocks.delete(old);
        }
        this.changed();
      }).finally(() => this.asked.delete(block)));
    }
    return this.asked.get(block);
  }

  // Rows from `start` on; where they are large, an answer has fewer than it is asked for.
  async fetch(start, count) {
    const found = [];
    while (found.length < count) {
      const { rows } = await get(`results/${segment(this.identifier)}/rows`, { start: start + found.length, count: Math.min(MOST, count - found.length) });
      if (!rows.length) break;
      for (const row of rows) found.push(row);
    }
    return found;
  }

  first(count) {
    return this.fetch(0, Math.min(count, this.total));
  }
}

// Arrow streams one behind the other are none: of those after the first the schema goes, of all but the last the end.
function spliced(parts) {
  const found = [];
  parts.forEach((part, i) => {
    const view = new DataView(part);
    const first = i === 0 ? 0 : 8 + view.getInt32(4, true);
    const ended = part.byteLength >= 8 && view.getInt32(part.byteLength - 8, true) === -1 && view.getInt32(part.byteLength - 4, true) === 0;
    found.push(new Uint8Array(part, first, part.byteLength - first - (ended && i < parts.length - 1 ? 8 : 0)));
  });
  return found;
}

const FILES = { csv: ["CSV", "text/csv"], arrow: ["Arrow", "application/vnd.apache.arrow.stream"], parquet: ["Parquet", "application/vnd.apache.parquet"] };

async function download(result, kind) {
  try {
    const parts = [];
    const count = kind === "parquet" ? 1 : Math.max(1, result.parts);
    for (let part = 0; part < count; part++) parts.push(await bytes(`results/${segment(result.identifier)}/${kind}`, { part }));
    save(`result.${kind}`, kind === "arrow" ? spliced(parts) : parts, FILES[kind][1]);
  } catch (error) {
    notice(error.message, "bad");
  }
}

export function downloads(result) {
  return Object.entries(FILES).map(([kind, [name]]) => button(name, () => download(result, kind), { "aria-label": `Download as ${name}`, title: `Download as ${name}`, class: "download" }));
}

function copyRow(result, values) {
  const names = result.columns.map((column) => column.name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice === undefined) copied(JSON.stringify(Object.fromEntries(names.map((name, i) => [name, values[i]]))));
  else notice(`JSON has room for one column called ${oneLine(twice, 100)}: name them apart.`, "bad");
}

function widths(result, rows) {
  return result.columns.map((column, i) => {
    const longest = Math.max(column.name.length + 2, column.type_text.length * 0.85, ...rows.slice(0, 100).map((row) => (row[i] === null ? 4 : Math.min(60, row[i].length))));
    return Math.round(Math.min(440, Math.max(64, longest * 8 + 20)));
  });
}

export async function resultTable(result) {
  await result.need(0, 1);
  const first = result.blocks.get(0) || [];
  const sizes = widths(result, first);
  const number = String(result.total).length * 8 + 22;
  const width = sizes.reduce((a, b) => a + b, number);
  const whole = el("section", { class: "whole-row", hidden: true, "aria-label": "The chosen row" });
  let timer = null;

  function cell(value, i) {
    const shown = el("span", { role: "cell", class: value === null ? "null" : result.isNumeric(i) ? "number" : "" }, value === null ? "NULL" : el("bdi", null, oneLine(value, 300)));
    shown.style.width = `${sizes[i]}px`;
    return shown;
  }

  function numbered(text) {
    const shown = el("span", { role: "rowheader", class: "row-number" }, text);
    shown.style.width = `${number}px`;
    return shown;
  }

  const head = el("div", { role: "row", class: "result-row head" }, numbered(el("span", { class: "unseen" }, "Row")), result.columns.map((column, i) => {
    const shown = el("span", { role: "columnheader", title: `${seen(column.name)} ${column.type_text}`, class: result.isNumeric(i) ? "number" : "" }, el("bdi", null, oneLine(column.name, 100) || "\u00a0"), el("small", null, column.type_text));
    shown.style.width = `${sizes[i]}px`;
    return shown;
  }));

  const list = new Windowed({
    height: ROW, label: "Result", columns: result.columns.length + 1, head,
    row: (i) => {
      const values = result.row(i);
      const shown = el("div", { class: "result-row" }, numbered(i + 1), values ? values.map(cell) : el("span", { class: "null" }, "…"));
      shown.style.width = `${width}px`;
      return shown;
    },
    open: (i) => {
      const values = result.row(i);
      if (!values) return;
      whole.hidden = false;
      fill(whole, el("h3", null, `Row ${i + 1}`), facts(result.columns.map((column, c) => [
        el("bdi", null, oneLine(column.name, 100)), values[c] === null ? el("span", { class: "null" }, "NULL") : el("pre", { dir: "auto" }, seen(values[c].slice(0, 100_000))),
      ])), el("p", { class: "buttons" }, button("Copy as JSON", () => copyRow(result, values)), button("Close", () => { whole.hidden = true; })));
    },
    near: (last, from) => {
      clearTimeout(timer);
      if (result.row(from) && result.row(Math.max(0, Math.min(last, result.total) - 1))) return;
      timer = setTimeout(() => result.need(from, last).catch((error) => notice(error.message, "bad")), 40);
    },
  });
  list.space.style.width = `${width}px`;
  result.changed = () => list.refresh();
  list.setCount(result.total);
  list.element.classList.add("result-table");
  return el("div", { class: "result-box", onkeydown: (event) => {
    if (event.key !== "Escape" || whole.hidden) return;
    whole.hidden = true;
    list.element.focus();
  } }, list.element, whole);
}
