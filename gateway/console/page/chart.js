// Pictures of a result: bars, lines, areas, points, a pie.

import { el, fill, svg } from "./dom.js";
import { count as shownCount, oneLine, seen } from "./format.js";

const MOST = 5000, MOST_BARS = 200, MOST_SLICES = 12, COLOURS = 8;
const KINDS = ["bar", "line", "area", "scatter", "pie"];
const LEFT = 78, RIGHT = 18, TOP = 14, BOTTOM = 48, LEANING = 112, LETTER = 7;
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TIMES = [1, 2, 5, 10, 15, 30].map((n) => n * SECOND).concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE), [1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14].map((n) => n * DAY));
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000];

function ticks(low, high, wanted, whole = false) {
  const raw = Math.max(whole ? 1 : 0, (high - low) / wanted || 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || raw;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9 && found.length < 50; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

// Round times of the calendar, in UTC.
function timeTicks(low, high, wanted) {
  const raw = (high - low) / wanted || SECOND;
  if (raw < SECOND) return ticks(low, high, wanted);
  const step = TIMES.find((s) => s >= raw);
  if (step) return range(Math.ceil(low / step), Math.floor(high / step)).map((n) => n * step);
  const months = MONTHS.find((m) => m * 30.4 * DAY >= raw) || MONTHS[MONTHS.length - 1];
  const of = (ms) => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth();
  return range(Math.floor(of(low) / months), Math.ceil(of(high) / months)).map((n) => new Date(0).setUTCFullYear(Math.floor((n * months) / 12), (n * months) % 12, 1)).filter((at) => at >= low && at <= high);
}

function range(from, to) {
  return Array.from({ length: Math.max(0, Math.min(100, to - from + 1)) }, (_, i) => from + i);
}

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const WHOLE = [0, 2, 4, 8].map((digits) => new Intl.NumberFormat("en", { maximumFractionDigits: digits }));

// Numbers in as few letters as tell them apart.
function numbers(values) {
  const found = [COMPACT, ...WHOLE].map((format) => values.map((v) => format.format(v))).find((texts) => new Set(texts).size === values.length);
  return found || values.map(String);
}

function times(values) {
  const texts = values.map((v) => new Date(v).toISOString());
  const days = new Set(texts.map((text) => text.slice(0, 10)));
  if (texts.every((text) => text.endsWith("T00:00:00.000Z"))) return texts.every((text) => text.slice(8, 10) === "01") && values[values.length - 1] - values[0] > 60 * DAY ? texts.map((text) => text.slice(0, 7)) : texts.map((text) => text.slice(0, 10));
  const end = texts.every((text) => text.slice(17, 23) === "00.000") ? 16 : texts.every((text) => text.slice(20, 23) === "000") ? 19 : 23;
  return days.size > 1 ? texts.map((text) => text.slice(5, end).replace("T", " ")) : texts.map((text) => text.slice(11, end));
}

function isTime(type) {
  return /^(DATE|TIMESTAMP)/.test(type);
}

// Times without a zone are read as those of UTC, in which they are shown.
function momentOf(written) {
  const whole = written.replace(" ", "T");
  return Date.parse(/T.*(Z|[+-]\d\d:?\d\d)$/.test(whole) || whole.length <= 10 ? whole : `${whole}Z`);
}

function text(x, y, words, attributes) {
  return svg("text", { x, y, ...attributes }, words);
}

// The picture, as wide as `wide`, and what it has at a place from the left: `{element, at}`.
function drawn(kind, rows, result, x, ys, wide) {
  const column = result.columns[x];
  const time = column && isTime(column.type_text);
  const measured = kind !== "bar" && kind !== "pie" && column && (time || result.isNumeric(x));
  const position = (row, i) => (!measured ? i : row[x] === null ? NaN : time ? momentOf(row[x]) : Number(row[x]));
  let points = rows.map((row, i) => ({ label: column ? (row[x] === null ? "NULL" : row[x]) : String(i + 1), at: position(row, i), values: ys.map((y) => (row[y] === null ? null : Number(row[y]))) }))
    .filter((point) => Number.isFinite(point.at) && point.values.some((v) => Number.isFinite(v)));
  if (kind === "bar") points = points.slice(0, MOST_BARS);
  if (measured && kind !== "scatter") points.sort((a, b) => a.at - b.at);
  if (!points.length) return { element: el("p", null, "There is nothing to draw: choose a column of numbers.") };
  const label = `${kind} chart of ${ys.map((y) => seen(result.columns[y].name)).join(", ")} by ${column ? seen(column.name) : "row"}, ${points.length} points`;
  if (kind === "pie") return { element: pie(points, label, wide) };

  const all = points.flatMap((point) => point.values.filter(Number.isFinite));
  let low = Math.min(...all), high = Math.max(...all);
  if (kind === "bar" || kind === "area") [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const around = ticks(low, high, 6, all.every(Number.isInteger)), step = around.length > 1 ? around[1] - around[0] : 0;
  if (step) [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  const levels = step ? ticks(low, high, Math.round((high - low) / step)) : around;
  const inner = wide - LEFT - RIGHT, slot = inner / points.length;
  const oneOf = (room) => Math.max(1, Math.ceil(points.length / Math.max(2, Math.floor(inner / room))));
  const leaning = !measured && points.some((point, i) => i % oneOf(70) === 0 && oneLine(point.label).length * LETTER > slot * oneOf(70));
  const every = oneOf(leaning ? 26 : 70);
  const high_ = Math.max(260, Math.min(400, wide * 0.42)) + (leaning ? LEANING - BOTTOM : 0), bottom = leaning ? LEANING : BOTTOM;
  const scaleY = (v) => TOP + (high_ - TOP - bottom) * (1 - (v - low) / (high - low));
  const from = measured ? Math.min(...points.map((p) => p.at)) : 0, to = measured ? Math.max(...points.map((p) => p.at)) : 0;
  const across = (v) => LEFT + (to === from ? inner / 2 : (inner * (v - from)) / (to - from));
  const scaleX = (point, i) => (measured ? across(point.at) : LEFT + slot * (i + 0.5));
  const levelTexts = numbers(levels);
  const places = measured ? (time ? timeTicks : ticks)(from, to, Math.max(2, Math.floor(inner / 110)), points.every((point) => Number.isInteger(point.at))) : [], placeTexts = time ? times(places) : numbers(places);
  const under = high_ - bottom + 18;
  const axis = [
    levels.map((v, i) => [svg("line", { x1: LEFT, x2: wide - RIGHT, y1: scaleY(v), y2: scaleY(v), class: v === 0 ? "axis" : "grid" }), text(LEFT - 8, scaleY(v) + 4, levelTexts[i], { "text-anchor": "end" })]),
    svg("line", { x1: LEFT, x2: wide - RIGHT, y1: high_ - bottom, y2: high_ - bottom, class: "axis" }),
    measured
      ? places.map((v, i) => text(across(v), under, placeTexts[i], { "text-anchor": "middle" }))
      : points.map((point, i) => i % every === 0 && (leaning
        ? text(0, 0, oneLine(point.label, 14) + (point.label.length > 14 ? "…" : ""), { "text-anchor": "end", transform: `translate(${scaleX(point, i) + 4} ${under - 4}) rotate(-35)` })
        : text(scaleX(point, i), under, oneLine(point.label, 60), { "text-anchor": "middle" }))),
    text(LEFT + inner / 2, high_ - 8, column ? oneLine(column.name, 80) : "row", { "text-anchor": "middle", class: "axis-name" }),
    text(0, 0, ys.length === 1 ? oneLine(result.columns[ys[0]].name, 40) : "values", { "text-anchor": "middle", class: "axis-name", transform: `translate(14 ${TOP + (high_ - TOP - bottom) / 2}) rotate(-90)` }),
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
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: high_ - bottom, visibility: "hidden" });
  const centres = points.map(scaleX);
  const element = svg("svg", { width: wide, height: high_, viewBox: `0 0 ${wide} ${high_}`, role: "img", "aria-label": label }, axis, marks, cursor);
  // The point nearest to a place, with the line that shows it; nothing for null.
  const at = (place) => {
    cursor.setAttribute("visibility", place === null ? "hidden" : "visible");
    if (place === null) return "";
    const nearest = centres.reduce((best, centre, i) => (Math.abs(centre - place) < Math.abs(centres[best] - place) ? i : best), 0);
    cursor.setAttribute("x1", centres[nearest]);
    cursor.setAttribute("x2", centres[nearest]);
    return `${oneLine(points[nearest].label, 60)} — ${ys.map((y, s) => `${oneLine(result.columns[y].name, 40)}: ${points[nearest].values[s] ?? "NULL"}`).join(", ")}`;
  };
  return { element, at };
}

function pie(points, label, wide) {
  const slices = points.map((point) => [point.label, point.values[0]]).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]);
  const shown = slices.slice(0, MOST_SLICES);
  const rest = slices.slice(MOST_SLICES).reduce((sum, [, v]) => sum + v, 0);
  if (rest > 0) shown.push(["all others", rest]);
  if (!shown.length) return el("p", null, "There is nothing to draw: a pie is of numbers above zero.");
  const total = shown.reduce((sum, [, v]) => sum + v, 0);
  const narrow = wide < 640, radius = narrow ? Math.min(120, wide / 2 - 10) : 160;
  const cx = narrow ? wide / 2 : radius + 30, cy = radius + 14;
  const [left, top] = narrow ? [10, 2 * radius + 40] : [2 * radius + 80, 26];
  const high = Math.max(2 * radius + 28, top + shown.length * 25);
  let angle = -Math.PI / 2;
  const parts = shown.map(([name, v], i) => {
    const turn = (2 * Math.PI * v) / total, from = angle;
    angle += turn;
    const title = svg("title", null, `${oneLine(name, 100)}: ${v} (${((100 * v) / total).toFixed(1)} %)`);
    if (shown.length === 1) return svg("circle", { class: "series c0", cx, cy, r: radius }, title);
    const edge = (a) => `${(cx + radius * Math.cos(a)).toFixed(2)} ${(cy + radius * Math.sin(a)).toFixed(2)}`;
    return svg("path", { class: `series slice c${i % COLOURS}`, d: `M${cx} ${cy} L${edge(from)} A${radius} ${radius} 0 ${turn > Math.PI ? 1 : 0} 1 ${edge(angle)} Z` }, title);
  });
  const legend = shown.map(([name, v], i) => [svg("rect", { class: `series c${i % COLOURS}`, x: left, y: top + i * 25, width: 13, height: 13 }), text(left + 22, top + 11 + i * 25, `${oneLine(name, narrow ? 24 : 40)}  ${COMPACT.format(v)}  ${((100 * v) / total).toFixed(1)} %`)]);
  return svg("svg", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": label }, parts, legend);
}

export async function chartView(result) {
  const rows = await result.first(MOST);
  const numbers = result.columns.map((_, i) => i).filter((i) => result.isNumeric(i));
  const labels = result.columns.map((_, i) => i).filter((i) => !numbers.includes(i));
  const chosen = { kind: "bar", x: labels[0] ?? (numbers.length > 1 ? numbers[0] : -1), ys: new Set() };
  const first = numbers.find((i) => i !== chosen.x);
  if (first !== undefined) chosen.ys.add(first);
  if (chosen.x >= 0 && (isTime(result.columns[chosen.x].type_text) || result.isNumeric(chosen.x))) chosen.kind = "line";
  let at = () => "", drawnWide = 0;
  const readout = el("p", { class: "hint chart-readout", "aria-hidden": "true" });
  const place = el("div", { class: "chart", onpointermove: (event) => { fill(readout, at(event.clientX - place.getBoundingClientRect().left) || "\u00a0"); }, onpointerleave: () => { fill(readout, at(null) || "\u00a0"); } });
  new ResizeObserver(() => {
    if (place.clientWidth === drawnWide) return;
    drawnWide = place.clientWidth;
    requestAnimationFrame(draw);
  }).observe(place);
  const legend = el("p", { class: "chart-legend" });
  const cut = el("p", { class: "hint" });

  function draw() {
    const ys = [...chosen.ys].sort((a, b) => a - b);
    const found = ys.length ? drawn(chosen.kind, rows, result, chosen.x, ys, Math.max(280, place.clientWidth || 900)) : { element: el("p", null, "Choose a column of numbers.") };
    fill(place, found.element);
    at = found.at || (() => "");
    fill(readout, "\u00a0");
    fill(legend, chosen.kind !== "pie" && ys.map((y, s) => el("span", { class: `c${s % COLOURS}` }, oneLine(result.columns[y].name, 60))));
    fill(cut, chosen.kind === "bar" && rows.length > MOST_BARS ? `Bars: the first ${MOST_BARS} rows of ${shownCount(result.total)}.` : result.total > rows.length ? `Of the first ${shownCount(rows.length)} rows of ${shownCount(result.total)}.` : null);
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
  return el("div", { class: "chart-box" }, el("div", { class: "chart-controls" }, kinds, xs, ys), place, readout, legend, cut);
}
