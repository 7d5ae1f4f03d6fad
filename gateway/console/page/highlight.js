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
