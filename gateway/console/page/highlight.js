// SQL in colours: pieces of a text, each an element.

import { el } from "./dom.js";
import { seen } from "./format.js";
import { KEYWORDS } from "./keywords.js";

// How pieces begin; where one ends that has an end of its own is looked for apart, as expressions have no room for long ones.
const BEGINNINGS = /(?<comment>--|\/\*)|(?<string>(?<![\p{L}\p{N}_])[rR]['"]|['"]|\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$)|(?<name>`)|(?<number>(?<![\w$])\d[\w.]*)|(?<word>[\p{L}_][\p{L}\p{N}_]*)/gu;
const KINDS = ["comment", "string", "name", "number", "word"];
const CLOSINGS = { "'": /\\[^]|''|'/g, '"': /\\[^]|""|"/g, "--": /\\\n|[\n\r]/g };
const LONGEST = 50_000;

function behind(text, closing, from) {
  const at = text.indexOf(closing, from);
  return at < 0 ? text.length : at + closing.length;
}

// Behind what closes a string, where neither a backslash nor its double stands; before a line's end, which a backslash takes away.
function closed(text, kind, from) {
  const closing = CLOSINGS[kind];
  closing.lastIndex = from;
  for (let found = closing.exec(text); found; found = closing.exec(text)) {
    if (found[0].length === 1) return kind === "--" ? found.index : closing.lastIndex;
  }
  return text.length;
}

// Behind a bracketed comment, which may hold others; what opens a hint opens none.
function behindComment(text, from) {
  let depth = 1, at = from;
  while (depth) {
    const close = text.indexOf("*/", at);
    if (close < 0) return text.length;
    const inner = text.slice(at, close + 1).indexOf("/*");
    if (inner < 0) [depth, at] = [depth - 1, close + 2];
    else [depth, at] = [depth + (text[at + inner + 2] !== "+"), at + inner + 2];
  }
  return at;
}

// Where a piece ends of which this much has been seen, as the gateway's own scan has it; its beginning where it is none.
function endOf(text, begun, start) {
  const from = start + begun.length;
  if (begun === "/*") return behindComment(text, from);
  if (begun === "`") return behind(text, begun, from);
  if (begun in CLOSINGS) return closed(text, begun, from);
  if (/^[rR]['"]$/.test(begun)) return behind(text, begun[1], from); // a raw string ends at its first quote
  if (begun.startsWith("$")) return text.includes(begun, from) ? behind(text, begun, from) : start;
  return from;
}

export function* pieces(text) {
  const next = new RegExp(BEGINNINGS);
  let at = 0;
  for (let found = next.exec(text); found; found = next.exec(text)) {
    const end = endOf(text, found[0], found.index);
    next.lastIndex = Math.max(end, found.index + 1);
    if (end === found.index) continue;
    if (found.index > at) yield [null, text.slice(at, found.index)];
    at = end;
    const piece = text.slice(found.index, end);
    const kind = KINDS.find((name) => found.groups[name] !== undefined);
    yield [kind !== "word" ? kind : KEYWORDS.has(piece.toUpperCase()) ? "keyword" : null, piece];
  }
  if (at < text.length) yield [null, text.slice(at)];
}

// The pieces of a text, cut where a piece of it is marked: `[kind, text, whether it is marked]`.
function* marked(text, mark) {
  let at = 0;
  for (const [kind, piece] of text.length > LONGEST ? [[null, text]] : pieces(text)) {
    const end = at + piece.length;
    const cuts = mark ? [at, ...mark.filter((place) => place > at && place < end), end] : [at, end];
    for (let i = 1; i < cuts.length; i++) yield [kind, text.slice(cuts[i - 1], cuts[i]), Boolean(mark) && cuts[i - 1] >= mark[0] && cuts[i] <= mark[1]];
    at = end;
  }
}

// Nodes that show a text; with `plain` hidden characters stay as they are, so that it takes the room that it takes in a field.
// `mark` is where a piece that is at fault begins and ends.
export function highlighted(text, plain = false, mark = null) {
  const shown = plain ? String : seen;
  return [...marked(text, mark)].map(([kind, piece, wrong]) => (kind || wrong ? el("span", { class: [kind && `hl-${kind}`, wrong && "hl-error"].filter(Boolean).join(" ") }, shown(piece)) : shown(piece)));
}
