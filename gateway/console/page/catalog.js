// Catalogs, schemas, tables; of a table its columns, first rows, history and detail.

import { get } from "./api.js";
import { answerTable, button, el, facts, fill } from "./dom.js";
import { count, oneLine, quoted, seen, size } from "./format.js";
import { below, catalogs, forgetNames } from "./names.js";
import { small } from "./session.js";
import { toEditor } from "./tabs.js";

const MOST = 2000;

function address(path) {
  return `#/catalog/${path.map(encodeURIComponent).join("/")}`;
}

function branch(path, open, chosen) {
  const inner = el("ul", { role: "group" });
  const name = path[path.length - 1];
  const leaf = path.length === 3;
  const here = chosen.length === path.length && path.every((part, i) => part === chosen[i]);
  // The link is the item: its name is its text alone, and not that of all below it.
  const link = el("a", { href: address(path), role: "treeitem", "aria-level": path.length, "aria-expanded": leaf ? undefined : String(open), "aria-selected": String(here), "aria-current": here ? "true" : undefined, tabindex: here || (!chosen.length && path.length === 1) ? 0 : -1 }, el("bdi", null, oneLine(name, 120)));
  const item = el("li", { role: "none", class: open ? "is-open" : undefined }, el("span", { class: `leaf level-${path.length}` }, !leaf && el("span", { class: "twist", "aria-hidden": "true", onclick: () => toggle() }), link), !leaf && inner);
  async function toggle(wanted = link.getAttribute("aria-expanded") !== "true") {
    link.setAttribute("aria-expanded", String(wanted));
    item.classList.toggle("is-open", wanted);
    inner.hidden = !wanted;
    if (wanted && !inner.childElementCount) await load();
  }
  async function load() {
    fill(inner, el("li", { role: "none" }, "…"));
    try {
      const found = await below(...path);
      fill(inner, found.items.slice(0, MOST).map((one) => branch([...path, one.name], chosen[path.length] === one.name && chosen.length > path.length + 1, chosen)),
        found.items.length ? null : el("li", { role: "none", class: "hint" }, "(empty)"), (found.more || found.items.length > MOST) && el("li", { role: "none", class: "hint" }, `only the first ${MOST}`));
    } catch (error) {
      fill(inner, el("li", { role: "none", class: "bad" }, error.message));
    }
  }
  link.toggle = toggle;
  if (!leaf && (open || (chosen.length >= path.length && path.every((part, i) => part === chosen[i])))) toggle(true);
  else inner.hidden = true;
  return item;
}

function keys(event) {
  const links = [...event.currentTarget.querySelectorAll("a")].filter((link) => link.getClientRects().length);
  const at = links.indexOf(document.activeElement);
  const item = document.activeElement;
  if (at < 0) return;
  const go = (link) => { event.preventDefault(); links.forEach((one) => { one.tabIndex = -1; }); link.tabIndex = 0; link.focus(); };
  if (event.key === "ArrowDown" && links[at + 1]) go(links[at + 1]);
  else if (event.key === "ArrowUp" && links[at - 1]) go(links[at - 1]);
  else if (event.key === "ArrowRight" && item.getAttribute("aria-expanded") === "false") { event.preventDefault(); item.toggle(true); }
  else if (event.key === "ArrowLeft") {
    if (item.getAttribute("aria-expanded") === "true") { event.preventDefault(); item.toggle(false); }
    else { const above = item.closest("[role=group]")?.parentElement.querySelector("a"); if (above) go(above); }
  }
}

async function tableView(place, path) {
  const full = path.map(quoted).join(".");
  const body = el("div", { class: "tab-body" }, "…");
  const tabs = {
    Columns: async () => {
      const found = await below(...path);
      return answerTable({ columns: ["Column", "Type", "NULL", "Comment"], rows: found.items.map((one) => [one.name, one.type, one.nullable, one.comment]) }, "Columns");
    },
    Preview: async () => answerTable(await small(`SELECT * FROM ${full} LIMIT 100`, 100), "The first rows"),
    History: async () => answerTable(await small(`DESCRIBE HISTORY ${full} LIMIT 100`, 100), "History"),
    Files: async () => {
      const { items } = await get("files", { catalog: path[0], schema: path[1], table: path[2] });
      if (!items.length) return el("p", { class: "hint" }, "It has no data files of its own: it is empty, a view, or rows in memory.");
      const total = items.reduce((sum, one) => sum + one.bytes, 0);
      return el("div", null, el("p", null, `${count(items.length)}${items.length >= 5000 ? " or more" : ""} files, ${size(total)}`),
        answerTable({ columns: ["File", "Partition", "Rows", "Bytes", "Deleted rows"], rows: items.slice(0, 1000).map((one) => [one.file, one.partition, one.rows === null ? null : count(one.rows), size(one.bytes), one.deleted ? "some" : ""]) }, "Files"),
        items.length > 1000 && el("p", { class: "hint" }, "Only the first 1,000 are listed."));
    },
    Partitions: async () => answerTable(await small(`SHOW PARTITIONS ${full}`, 500), "Partitions"),
    Detail: async () => {
      const found = await small(`DESCRIBE DETAIL ${full}`, 1);
      return facts(found.columns.map((name, i) => [name, found.rows[0]?.[i] === null || found.rows[0] === undefined ? null : seen(found.rows[0][i])]));
    },
    Definition: async () => el("pre", { class: "sql", tabindex: 0, "aria-label": "Definition" }, seen((await small(`SHOW CREATE TABLE ${full}`, 1)).rows[0]?.[0] ?? "")),
  };
  let asked = 0;
  async function open(name) {
    const mine = ++asked;
    for (const one of bar.children) one.setAttribute("aria-pressed", String(one.textContent === name));
    fill(body, el("p", null, "…"));
    try {
      const made = await tabs[name]();
      if (mine === asked) fill(body, made);
    } catch (error) {
      if (mine === asked) fill(body, el("pre", { class: "notice bad" }, seen(error.message)));
    }
  }
  const bar = el("div", { class: "buttons", role: "group", "aria-label": "What to show" }, Object.keys(tabs).map((name) => button(name, () => open(name))));
  fill(place, el("h1", null, el("bdi", null, oneLine(path.join("."), 300))), bar, el("p", { class: "buttons" }, button("Query in the editor", () => toEditor(`SELECT * FROM ${full} LIMIT 1000`))), body);
  await open("Columns");
}

async function listView(place, path) {
  const found = await (path.length ? below(...path) : catalogs());
  const names = { catalogs: "Catalogs", schemas: "Schemas", tables: "Tables and views" };
  fill(place, el("h1", null, path.length ? el("bdi", null, oneLine(path.join("."), 300)) : "Catalogs"), el("h2", null, names[found.kind] || ""),
    found.items.length ? el("ul", { class: "names" }, found.items.slice(0, MOST).map((one) => el("li", null, el("a", { href: address([...path, one.name]) }, el("bdi", null, oneLine(one.name, 120))), one.comment && el("small", null, " ", el("bdi", null, oneLine(one.comment, 200)))))) : el("p", { class: "hint" }, "There is nothing here."));
}

export async function catalogView(place, me, path) {
  path = path.filter(Boolean).slice(0, 3);
  const tree = el("ul", { role: "tree", "aria-label": "Catalogs", onkeydown: keys });
  const side = el("aside", { class: "tree" }, el("div", { class: "tree-head" }, el("span", null, "Catalogs"), button("Reload", () => { forgetNames(); catalogView(place, me, path); })), tree);
  const detail = el("article", { class: "page" });
  fill(place, el("div", { class: "catalog" }, side, detail));
  const trouble = (error) => fill(detail, el("p", { class: "notice bad" }, error.message));
  await Promise.all([
    catalogs().then((found) => fill(tree, found.items.map((one) => branch([one.name], path[0] === one.name, path))), trouble),
    (path.length === 3 ? tableView(detail, path) : listView(detail, path)).catch(trouble),
  ]);
}
