// Pictures of a result: bars, lines, areas, points, a pie.

import { el, fill, svg } from "./dom.js";
import { count as shownCount, oneLine, seen } from "./format.js";

const MOST = 5000, MOST_BARS = 200, MOST_SLICES = 12, COLOURS = 8;
const KINDS = ["bar", "line", "area", "scatter", "pie"];
const WIDTH = 900, HEIGHT = 380, LEFT = 70, RIGHT = 16, TOP = 14, BOTTOM = 46;

function ticks(low, high, wanted) {
  const raw = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });

function isTime(type) {
  return /^(DATE|TIMESTAMP)/.test(type);
}

function text(x, y, words, attributes) {
  return svg("text", { x, y, ...attributes }, words);
}

function drawn(kind, rows, result, x, ys) {
  const column = result.columns[x];
  const time = column && isTime(column.type_text);
  const measured = kind !== "bar" && kind !== "pie" && column && (time || result.isNumeric(x));
  const position = (row, i) => (!measured ? i : time ? Date.parse(row[x]) : Number(row[x]));
  let points = rows.map((row, i) => ({ label: column ? (row[x] === null ? "NULL" : row[x]) : String(i + 1), at: position(row, i), values: ys.map((y) => (row[y] === null ? null : Number(row[y]))) }))
    .filter((point) => Number.isFinite(point.at) && point.values.some((v) => Number.isFinite(v)));
  if (kind === "bar") points = points.slice(0, MOST_BARS);
  if (measured && kind !== "scatter") points.sort((a, b) => a.at - b.at);
  if (!points.length) return el("p", null, "There is nothing to draw: choose a column of numbers.");
  const label = `${kind} chart of ${ys.map((y) => seen(result.columns[y].name)).join(", ")} by ${column ? seen(column.name) : "row"}, ${points.length} points`;
  if (kind === "pie") return pie(points, label);

  const all = points.flatMap((point) => point.values.filter(Number.isFinite));
  let low = Math.min(...all), high = Math.max(...all);
  if (kind === "bar" || kind === "area") [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) [low, high] = [low - 1, high + 1];
  const scaleY = (v) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (v - low) / (high - low));
  const wide = WIDTH - LEFT - RIGHT;
  const from = measured ? Math.min(...points.map((p) => p.at)) : 0, to = measured ? Math.max(...points.map((p) => p.at)) : 0;
  const slot = wide / points.length;
  const scaleX = (point, i) => (measured ? LEFT + (to === from ? wide / 2 : (wide * (point.at - from)) / (to - from)) : LEFT + slot * (i + 0.5));
  const axis = [
    ticks(low, high, 6).map((v) => [svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: scaleY(v), y2: scaleY(v), class: v === 0 ? "axis" : "grid" }), text(LEFT - 8, scaleY(v) + 4, COMPACT.format(v), { "text-anchor": "end" })]),
    measured
      ? ticks(from, to, 6).map((v) => text(LEFT + (to === from ? wide / 2 : (wide * (v - from)) / (to - from)), HEIGHT - BOTTOM + 18, time ? new Date(v).toISOString().slice(0, 10) : COMPACT.format(v), { "text-anchor": "middle" }))
      : points.filter((_, i) => i % Math.ceil(points.length / 12) === 0).map((point) => text(scaleX(point, points.indexOf(point)), HEIGHT - BOTTOM + 18, oneLine(point.label, Math.max(4, Math.floor(90 / Math.min(12, points.length)))), { "text-anchor": "middle" })),
    text(LEFT + wide / 2, HEIGHT - 8, column ? oneLine(column.name, 80) : "row", { "text-anchor": "middle", class: "axis-name" }),
  ];
  const marks = ys.map((y, s) => {
    const known = points.map((point, i) => [scaleX(point, i), point.values[s], point]).filter(([, v]) => Number.isFinite(v));
    const title = (point, v) => svg("title", null, `${oneLine(point.label, 100)}: ${v}`);
    const colour = `series c${s % COLOURS}`;
    if (kind === "bar") {
      const bar = Math.max(1, (slot * 0.8) / ys.length);
      return known.map(([at, v, point]) => svg("rect", { class: colour, x: at - (bar * ys.length) / 2 + bar * s, width: bar, y: Math.min(scaleY(v), scaleY(0)), height: Math.max(0.5, Math.abs(scaleY(v) - scaleY(0))) }, title(point, v)));
    }
    if (kind === "scatter") return known.map(([at, v, point]) => svg("circle", { class: colour, cx: at, cy: scaleY(v), r: 3.5 }, title(point, v)));
    const line = known.map(([at, v]) => `${at.toFixed(1)},${scaleY(v).toFixed(1)}`).join(" ");
    if (kind === "line" || !known.length) return [svg("polyline", { class: `stroke c${s % COLOURS}`, points: line }), known.length <= 60 && known.map(([at, v, point]) => svg("circle", { class: colour, cx: at, cy: scaleY(v), r: 3 }, title(point, v)))];
    const base = scaleY(Math.max(low, Math.min(high, 0)));
    return [svg("polygon", { class: `${colour} faint`, points: `${known[0][0]},${base} ${line} ${known[known.length - 1][0]},${base}` }), svg("polyline", { class: `stroke c${s % COLOURS}`, points: line })];
  });
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, axis, marks);
}

function pie(points, label) {
  const slices = points.map((point) => [point.label, point.values[0]]).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]);
  const shown = slices.slice(0, MOST_SLICES);
  const rest = slices.slice(MOST_SLICES).reduce((sum, [, v]) => sum + v, 0);
  if (rest > 0) shown.push(["all others", rest]);
  const total = shown.reduce((sum, [, v]) => sum + v, 0);
  let angle = -Math.PI / 2;
  const cx = 200, cy = HEIGHT / 2, radius = 160;
  const parts = shown.map(([name, v], i) => {
    const turn = (2 * Math.PI * v) / total, from = angle;
    angle += turn;
    const title = svg("title", null, `${oneLine(name, 100)}: ${v} (${((100 * v) / total).toFixed(1)} %)`);
    if (shown.length === 1) return svg("circle", { class: "series c0", cx, cy, r: radius }, title);
    const edge = (a) => `${(cx + radius * Math.cos(a)).toFixed(2)} ${(cy + radius * Math.sin(a)).toFixed(2)}`;
    return svg("path", { class: `series slice c${i % COLOURS}`, d: `M${cx} ${cy} L${edge(from)} A${radius} ${radius} 0 ${turn > Math.PI ? 1 : 0} 1 ${edge(angle)} Z` }, title);
  });
  const legend = shown.map(([name, v], i) => [svg("rect", { class: `series c${i % COLOURS}`, x: 420, y: 26 + i * 25, width: 13, height: 13 }), text(442, 37 + i * 25, `${oneLine(name, 40)}  ${COMPACT.format(v)}  ${((100 * v) / total).toFixed(1)} %`)]);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, parts, legend);
}

export async function chartView(result) {
  const rows = await result.first(MOST);
  const numbers = result.columns.map((_, i) => i).filter((i) => result.isNumeric(i));
  const labels = result.columns.map((_, i) => i).filter((i) => !numbers.includes(i));
  const chosen = { kind: "bar", x: labels[0] ?? (numbers.length > 1 ? numbers[0] : -1), ys: new Set() };
  const first = numbers.find((i) => i !== chosen.x);
  if (first !== undefined) chosen.ys.add(first);
  if (chosen.x >= 0 && (isTime(result.columns[chosen.x].type_text) || result.isNumeric(chosen.x))) chosen.kind = "line";
  const place = el("div", { class: "chart" });
  const legend = el("p", { class: "chart-legend" });

  function draw() {
    const ys = [...chosen.ys].sort((a, b) => a - b);
    fill(place, ys.length ? drawn(chosen.kind, rows, result, chosen.x, ys) : el("p", null, "Choose a column of numbers."));
    fill(legend, chosen.kind !== "pie" && ys.map((y, s) => el("span", { class: `c${s % COLOURS}` }, oneLine(result.columns[y].name, 60))));
    for (const one of kinds.children) one.setAttribute("aria-pressed", String(one.textContent === chosen.kind));
  }

  const kinds = el("div", { class: "buttons", role: "group", "aria-label": "Kind of chart" }, KINDS.map((kind) => el("button", { type: "button", onclick: () => { chosen.kind = kind; draw(); } }, kind)));
  const xs = el("label", null, "by ", el("select", { onchange: (event) => { chosen.x = Number(event.target.value); draw(); } },
    el("option", { value: -1, selected: chosen.x < 0 }, "row"), result.columns.map((column, i) => el("option", { value: i, selected: i === chosen.x }, oneLine(column.name, 60)))));
  const ys = el("fieldset", null, el("legend", null, "Values"), numbers.map((i) => el("label", null, el("input", { type: "checkbox", checked: chosen.ys.has(i), onchange: (event) => {
    if (event.target.checked) chosen.ys.add(i);
    else chosen.ys.delete(i);
    draw();
  } }), oneLine(result.columns[i].name, 60))));
  draw();
  const cut = result.total > rows.length ? `Of the first ${shownCount(rows.length)} rows of ${shownCount(result.total)}.` : chosen.kind === "bar" && rows.length > MOST_BARS ? `Bars: the first ${MOST_BARS} rows.` : "";
  return el("div", { class: "chart-box" }, el("div", { class: "chart-controls" }, kinds, xs, ys), place, legend, el("p", { class: "hint" }, cut));
}
