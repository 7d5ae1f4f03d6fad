// Where the statements of a text begin and end, as the gateway's own scan tells them apart.

import { pieces } from "./highlight.js";

const WORD = /^[\p{L}_]/u;
const BLOCKS_OF_THEIR_OWN = new Set(["IF", "WHILE", "LOOP", "REPEAT", "FOR"]); // END IF … END FOR

// Words (in upper case), semicolons and what else is no comment, each with its place.
function tokens(text) {
  const found = [];
  let place = 0;
  for (const [kind, piece] of pieces(text)) {
    if (kind === "keyword" || (kind === null && WORD.test(piece))) found.push([piece.toUpperCase(), place]);
    else if (kind === null) for (const sign of piece.matchAll(/\S/g)) found.push([sign[0], place + sign.index]);
    else if (kind !== "comment") found.push([kind, place]);
    place += piece.length;
  }
  return found;
}

// The token behind the END of the script that begins at a token, if one does.
function behindScript(found, first) {
  const word = (at) => found[at]?.[0];
  if (word(first) !== "BEGIN" || word(first + 1) === "TRANSACTION") return first;
  let depth = 0, at = first;
  for (; at < found.length; at++) {
    if (word(at) === "BEGIN" || word(at) === "CASE") depth += 1;
    else if (word(at) === "END") {
      if (!BLOCKS_OF_THEIR_OWN.has(word(at + 1))) depth -= 1;
      if (word(at + 1) === "CASE") at += 1;
    }
    if (!depth) break;
  }
  return at;
}

// The statement that a place in a text belongs to: semicolons divide them, but those of a script (BEGIN … END).
export function statementAt(text, at) {
  const found = tokens(text);
  let begin = 0, last = [0, text.length];
  for (let i = 0; i < found.length; i++) {
    const first = i;
    for (i = behindScript(found, i); i < found.length && found[i][0] !== ";";) i++;
    const end = i < found.length ? found[i][1] : text.length;
    if (i > first) {
      last = [begin, end];
      if (end >= at) return last;
    }
    begin = end + 1;
  }
  return last;
}
