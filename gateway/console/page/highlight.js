// SQL in colours: pieces of a text, each an element.

import { el } from "./dom.js";
import { seen } from "./format.js";
import { KEYWORDS } from "./keywords.js";

const PIECES = /(?<comment>--[^\n]*|\/\*[^]*?(?:\*\/|$))|(?<string>'(?:[^'\\]|\\[^]|'')*'?|"(?:[^"\\]|\\[^]|"")*"?)|(?<name>`[^`]*`?)|(?<number>(?<![\w$])\d[\w.]*)|(?<word>[\p{L}_][\p{L}\p{N}_]*)/gu;
const LONGEST = 50_000;

export function* pieces(text) {
  let at = 0;
  for (const found of text.matchAll(PIECES)) {
    if (found.index > at) yield [null, text.slice(at, found.index)];
    const groups = found.groups;
    let kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    if (kind === "word") kind = KEYWORDS.has(found[0].toUpperCase()) ? "keyword" : null;
    yield [kind, found[0]];
    at = found.index + found[0].length;
  }
  if (at < text.length) yield [null, text.slice(at)];
}

// Nodes that show a text; with `plain` hidden characters stay as they are, so that it takes the room that it takes in a field.
export function highlighted(text, plain = false) {
  const shown = plain ? String : seen;
  if (text.length > LONGEST) return [shown(text)];
  return [...pieces(text)].map(([kind, piece]) => (kind ? el("span", { class: `hl-${kind}` }, shown(piece)) : shown(piece)));
}
