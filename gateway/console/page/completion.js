// What may stand at the cursor: words of the language, catalogs, schemas, tables, columns.

import { quoted } from "./format.js";
import { KEYWORDS } from "./keywords.js";
import { below, catalogs } from "./names.js";

const MOST = 200, PART = "(?:`(?:[^`]|``)*`|[\\p{L}_][\\p{L}\\p{N}_]*)";
const AT = new RegExp(`((?:${PART}\\.)*)(\`[^\`]*|[\\p{L}_][\\p{L}\\p{N}_]*)?$`, "u");
const TABLES = new RegExp(`\\b(?:from|join|into|update|table|using)\\s+((?:${PART}\\.){0,2}${PART})(?:\\s+(?:as\\s+)?(?!(?:on|where|join|left|right|inner|full|cross|group|order|set|using|values|select|limit|having|union)\\b)(${PART}))?`, "giu");
const PARTS = new RegExp(PART, "gu");
const PLAIN = /^[A-Za-z_][A-Za-z0-9_]*$/;

function plain(name) {
  return name.startsWith("`") ? name.replace(/^`|`$/g, "").replaceAll("``", "`") : name;
}

function parts(path) {
  return (path.match(PARTS) || []).map(plain);
}

function written(name) {
  return PLAIN.test(name) && !KEYWORDS.has(name.toUpperCase()) ? name : quoted(name);
}

async function names(...path) {
  try {
    return (await (path.length ? below(...path) : catalogs())).items;
  } catch {
    return []; // completion is a help: without an answer there is none
  }
}

function placed(path, where) {
  if (path.length === 3) return path;
  return path.length === 2 ? [where.catalog, ...path] : [where.catalog, where.schema, ...path];
}

// What could be written at `at`: `{from, items: [{text, kind, told}]}`; `where` is the session's catalog and schema.
export async function completions(text, at, where) {
  const before = text.slice(Math.max(0, at - 300), at);
  const found = AT.exec(before);
  const path = parts(found[1] || ""), begun = found[2] || "";
  const wanted = plain(begun).toLowerCase();
  const mentioned = [...text.matchAll(TABLES)].map((match) => ({ path: parts(match[1]), alias: match[2] && plain(match[2]) }));
  const items = [];
  const add = (list, kind) => list.forEach((one) => items.push({ text: written(one.name), name: one.name, kind, told: one.type || "" }));
  if (!path.length) {
    for (const table of mentioned) {
      if (table.path.length) add(await names(...placed(table.path, where)), "column");
      if (table.alias) add([{ name: table.alias }], "alias");
    }
    add(await names(where.catalog, where.schema), "table");
    add(await names(where.catalog), "schema");
    add(await names(), "catalog");
    if (!begun.startsWith("`")) [...KEYWORDS].forEach((word) => items.push({ text: word, name: word, kind: "keyword", told: "" }));
  } else if (path.length === 1) {
    const table = mentioned.find((one) => (one.alias || one.path[one.path.length - 1] || "").toLowerCase() === path[0].toLowerCase());
    if (table) add(await names(...placed(table.path, where)), "column");
    else {
      add(await names(path[0]), "schema");
      add(await names(where.catalog, path[0]), "table");
    }
  } else if (path.length === 2) {
    add(await names(...path), "table");
    if (!items.length) add(await names(where.catalog, ...path), "column");
  } else add(await names(...path), "column");
  const seen = new Set();
  const fitting = items.filter((item) => {
    const key = `${item.kind} ${item.text}`;
    return item.name.toLowerCase().startsWith(wanted) && item.name.toLowerCase() !== wanted && !seen.has(key) && seen.add(key);
  });
  return { from: at - begun.length, items: fitting.slice(0, MOST) };
}
