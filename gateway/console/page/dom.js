// Elements, made of names, attributes and texts: no text ever becomes markup.

import { oneLine } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

export function el(name, attributes, ...children) {
  return make(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return make(document.createElementNS(SVG, name), attributes, children);
}

export function fill(element, ...children) {
  element.replaceChildren();
  return make(element, null, children);
}

let pressed = false, waiting = [];

function press(event) {
  pressed = event.buttons > 0;
  if (!pressed && waiting.length) setTimeout(() => { // the click comes after its release
    for (const resume of waiting.splice(0)) resume();
  });
}

for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) addEventListener(kind, press, true);
addEventListener("blur", () => press({ buttons: 0 }));

// Waits while somebody presses: a click is lost where what was pressed is replaced before it is let go.
export function released() {
  return pressed ? new Promise((resume) => { waiting.push(resume); }) : undefined;
}

export function button(text, action, attributes) {
  return el("button", { type: "button", onclick: action, ...attributes }, text);
}

// A table of two columns: what it is, and what it says; a third value has it take a whole line.
export function facts(rows) {
  return el("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(
    ([name, value, wide]) => el("div", { class: wide ? "wide" : undefined }, el("dt", null, name), el("dd", null, value)),
  ));
}

export function notice(text, kind = "") {
  const place = document.getElementById("notices");
  const shown = el("p", { class: `notice ${kind}` }, text);
  place.append(shown);
  setTimeout(() => shown.remove(), 6000);
}

export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied.");
  } catch {
    notice("The browser does not let pages copy here.", "bad");
  }
}

// A text to be saved as a file.
export function save(name, parts, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Whether somebody agrees to what cannot be taken back.
export function agreed(question, word) {
  return new Promise((done) => {
    const dialog = el("dialog", { "aria-label": question, onclose: () => {
      done(dialog.returnValue === word);
      dialog.remove();
    } }, el("p", null, question), el("p", { class: "buttons" },
      button(word, () => dialog.close(word), { class: "danger" }), button("Leave it", () => dialog.close(""))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// A small answer as a table.
export function answerTable(found, label) {
  return el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": label }, el("table", { class: "plain-table" },
    el("thead", null, el("tr", null, found.columns.map((name) => el("th", { scope: "col" }, el("bdi", null, oneLine(name, 120)))))),
    el("tbody", null, found.rows.length ? found.rows.map((row) => el("tr", null, row.map((value) => el("td", null, value === null ? el("span", { class: "null" }, "NULL") : el("bdi", null, oneLine(value, 500)))))) : el("tr", null, el("td", { colspan: found.columns.length || 1 }, "No rows.")))));
}
