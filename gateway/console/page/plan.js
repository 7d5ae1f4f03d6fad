// The text of EXPLAIN and EXPLAIN ANALYZE as a picture of operators.

import { el, svg } from "./dom.js";
import { count, duration, oneLine, rowsOf, seen, size } from "./format.js";

const BOX = 220, TALL = 86, GAP_X = 18, GAP_Y = 24, MOST = 300, SLOWEST = 3;
const LINE = /^(\s*)(\w+)(?::\s?(.*?))?(?:\s\[((?:rows \d+, )?time [^[\]]*)\])?$/;

// The operators of a text that tells them indented, the first over all others; null if it tells none.
export function operators(text) {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^== (Analyzed|Physical) Plan ==$/.test(line.trim()));
  if (start < 0) return null;
  const stack = [];
  let root = null, found = 0;
  for (const line of lines.slice(start + 1)) {
    if (!line.trim()) break;
    const match = LINE.exec(line);
    if (!match || ++found > MOST) return null;
    const depth = match[1].length / 2;
    const facts = Object.fromEntries((match[4] || "").split(", ").filter(Boolean).map((fact) => {
      const numbers = /^(.*?) (-?[\d.]+)( .*)?$/.exec(fact);
      return numbers ? [numbers[1], `${numbers[2]}${numbers[3] || ""}`] : [fact, ""];
    }));
    const node = { name: match[2], detail: (match[3] || "").replace(/^file_groups=\{\d+ groups?: \[.*?\]\}, /, ""), told: match[4] || "", rows: facts.rows === undefined ? null : Number(facts.rows), ms: facts.time ? parseFloat(facts.time) : null, children: [] };
    if (depth === 0) {
      if (root) return null;
      root = node;
    } else if (stack[depth - 1]) stack[depth - 1].children.push(node);
    else return null;
    stack.length = depth;
    stack[depth] = node;
  }
  return root;
}

// The operators that the history has kept, as a tree; null without any.
export function kept(list) {
  const stack = [];
  let root = null;
  for (const one of list || []) {
    const [name, ...rest] = one.text.split(":");
    const told = [["read", "read"], ["bytes", "output"], ["memory", "memory"], ["spilled", "spilled"]].filter(([key]) => one[key]).map(([key, word]) => `${word} ${size(one[key])}`);
    if (one.filtered) told.push(`rows filtered by the scan ${count(one.filtered)}`);
    for (const [what, left, total] of one.pruned || []) told.push(`${what} pruned ${left} of ${total}`);
    const node = { name, detail: rest.join(":").trim(), told: told.join(", "), rows: one.rows ?? null, ms: one.ms ?? null, children: [] };
    if (one.depth === 0) {
      if (root) return null;
      root = node;
    } else if (stack[one.depth - 1]) stack[one.depth - 1].children.push(node);
    else return null;
    stack.length = one.depth;
    stack[one.depth] = node;
  }
  return root;
}

function placed(node, x, y) {
  node.y = y;
  if (!node.children.length) {
    node.x = x;
    node.width = BOX;
    return;
  }
  let at = x;
  for (const child of node.children) {
    placed(child, at, y + TALL + GAP_Y);
    at += child.width + GAP_X;
  }
  node.width = at - GAP_X - x;
  node.x = (node.children[0].x + node.children[node.children.length - 1].x) / 2;
}

function everyOne(node) {
  return [node, ...node.children.flatMap(everyOne)];
}

// What an operator was spared, and what it held: "22 of 23 row groups pruned".
function spared(told) {
  const found = new Map();
  for (const [, what, out, total] of told.matchAll(/(row groups|files|pages)(?: by [a-z ]+?)? pruned (\d+) of (\d+)/g)) {
    if (Number(out)) found.set(what, `${count(Number(out))} of ${count(Number(total))} ${what} pruned`);
  }
  return [...["files", "row groups", "pages"].map((what) => found.get(what)).filter(Boolean).slice(0, 1),
    /memory ([^,]+)/.exec(told)?.[0], /spilled/.test(told) ? "spilled" : null].filter(Boolean);
}

// A picture of a plan's text, with what is told before it, and the text beneath it.
export function planView(text) {
  const root = operators(text);
  const written = el("details", { open: !root }, el("summary", null, "As text"), el("pre", { class: "sql", tabindex: 0, "aria-label": "Plan as text" }, seen(text)));
  const before = text.slice(0, Math.max(0, text.indexOf("\n=="))).split("\n").filter((line) => /^(Engine|Table|Spilled): /.test(line)).join("\n");
  return root ? picture(root, written, before && el("pre", { class: "plan-facts" }, seen(before))) : el("div", { class: "plan" }, written);
}

// A picture of a tree of operators, with what belongs above and beneath it.
export function picture(root, beneath = null, above = null) {
  placed(root, 8, 8);
  const all = everyOne(root);
  const high = Math.max(...all.map((node) => node.y)) + TALL + 8;
  const wide = Math.max(...all.map((node) => node.x)) + BOX + 8;
  const spent = all.reduce((sum, node) => sum + (node.ms || 0), 0);
  const slowest = Math.max(0.001, ...all.map((node) => node.ms || 0));
  const most = Math.max(1, ...all.map((node) => node.rows || 0));
  const detail = el("p", { class: "plan-detail", "aria-live": "polite" }, "An operator that is chosen is told in full here.");
  const edges = all.flatMap((node) => node.children.map((child) => {
    const path = svg("path", { class: "edge", d: `M${child.x + BOX / 2} ${child.y} C${child.x + BOX / 2} ${child.y - GAP_Y / 2} ${node.x + BOX / 2} ${node.y + TALL + GAP_Y / 2} ${node.x + BOX / 2} ${node.y + TALL}` });
    path.setAttribute("stroke-width", String(1 + (7 * Math.log1p(child.rows || 0)) / Math.log1p(most)));
    return path;
  }));
  const show = (node) => detail.replaceChildren(el("b", null, seen(node.name)), seen(`${node.detail ? `: ${node.detail}` : ""}${node.told ? ` — ${node.told}` : ""}`));
  const name = (node) => oneLine(node.name.replace(/Exec$/, ""), 28);
  const boxes = new Map(all.map((node) => {
    const told = [node.rows === null ? null : rowsOf(node.rows), node.ms === null ? null : duration(node.ms)].filter(Boolean).join(" · ");
    const shown = [name(node), oneLine(node.detail, 29), oneLine(told, 34), oneLine(spared(node.told).join(" · "), 36)];
    return [node, svg("g", { class: "operator", tabindex: 0, role: "button", "aria-label": shown.filter(Boolean).join(" "), onclick: () => show(node), onfocus: () => show(node), transform: `translate(${node.x} ${node.y})` },
      svg("title", null, oneLine(`${node.name} ${node.detail}`, 500)),
      svg("rect", { width: BOX, height: TALL, rx: 6, class: "box" }),
      svg("rect", { width: (BOX * (node.ms || 0)) / slowest, height: 5, y: TALL - 6, class: "heat" }),
      svg("text", { x: 10, y: 19, class: "name" }, shown[0]), " ",
      svg("text", { x: 10, y: 36, class: "detail" }, shown[1]), " ",
      svg("text", { x: 10, y: 54 }, shown[2]), " ",
      svg("text", { x: 10, y: 71, class: "spared" }, shown[3]))];
  }));
  const scroll = el("div", { class: "plan-scroll", tabindex: 0, role: "group", "aria-label": `Plan of ${all.length} operators` }, svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}` }, edges, [...boxes.values()]));
  const look = (node) => { scroll.scrollLeft = node.x + BOX / 2 - scroll.clientWidth / 2; scroll.scrollTop = node.y + TALL / 2 - scroll.clientHeight / 2; };
  new ResizeObserver((_, observer) => { // once it is seen: the first operator, wherever it stands in a wide plan
    if (!scroll.clientWidth) return;
    look(root);
    observer.disconnect();
  }).observe(scroll);
  const first = spent > 0 ? [...all].sort((a, b) => (b.ms || 0) - (a.ms || 0)).slice(0, SLOWEST).filter((node) => node.ms > 0) : [];
  const side = el("div", { class: "plan-side" },
    first.length > 0 && el("p", { class: "buttons plan-slowest" }, el("span", { class: "hint" }, "Slowest:"), first.map((node) =>
      el("button", { type: "button", onclick: () => { boxes.get(node).scrollIntoView({ block: "center", inline: "center" }); boxes.get(node).focus({ preventScroll: true }); } }, `${name(node)} ${duration(node.ms)}, ${Math.round((100 * node.ms) / spent)} %`))),
    detail, above);
  return el("div", { class: "plan" }, el("div", { class: "plan-both" }, side, scroll), beneath);
}
