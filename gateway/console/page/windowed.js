// A long list of which only the rows in sight are elements.

import { el } from "./dom.js";

const MOST_PIXELS = 8_000_000; // taller elements are cut by browsers: beyond it a pixel of the scroll bar is more than one
const BESIDE = 8;

export class Windowed {
  // `row(i)` makes the element of a row; `open(i)` is for Enter and a click; `near(i)` is told the last row in sight.
  constructor({ height, row, open, near, label, columns = 0, head = null }) {
    this.height = height;
    this.row = row;
    this.open = open;
    this.near = near;
    this.count = 0;
    this.chosen = -1;
    this.rows = el("div", { class: "window-rows", role: "rowgroup" });
    this.space = el("div", { class: "window-space", role: "presentation" }, this.rows);
    this.element = el("div", { class: "window", role: open ? "grid" : "table", "aria-label": label, tabindex: 0, onscroll: () => this.draw(),
      onkeydown: (event) => this.pressed(event), onclick: (event) => this.clicked(event), "aria-colcount": columns || undefined },
      head && el("div", { role: "rowgroup", class: "window-head" }, head), this.space);
    this.shown = new Map();
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  setCount(count) {
    this.count = count;
    this.element.setAttribute("aria-rowcount", count);
    const pixels = Math.min(count * this.height, MOST_PIXELS);
    this.space.style.height = `${pixels}px`;
    this.chosen = Math.min(this.chosen, count - 1);
    this.refresh();
  }

  // Rows have changed: all in sight are made anew.
  refresh() {
    this.shown.clear();
    this.rows.replaceChildren();
    this.draw();
  }

  get first() {
    const room = this.space.offsetHeight - this.element.clientHeight;
    const real = this.count * this.height - this.element.clientHeight;
    const share = real > room && room > 0 ? real / room : 1;
    return (this.element.scrollTop * share) / this.height;
  }

  draw() {
    if (!this.element.isConnected) return;
    const visible = Math.ceil(this.element.clientHeight / this.height) + 1;
    const first = this.first, above = this.element.scrollTop; // asked once: after a change each would be a layout anew
    const from = Math.max(0, Math.floor(first) - BESIDE);
    const to = Math.min(this.count, Math.floor(first) + visible + BESIDE);
    for (const [i, element] of this.shown) {
      if (i < from || i >= to) {
        element.remove();
        this.shown.delete(i);
      }
    }
    for (let i = from; i < to; i++) {
      let element = this.shown.get(i);
      if (!element) {
        element = this.row(i);
        element.setAttribute("role", "row");
        element.setAttribute("aria-rowindex", i + 1);
        element.dataset.index = i;
        element.id = `${this.name}-${i}`;
        this.shown.set(i, element);
        this.rows.append(element);
      }
      element.classList.toggle("chosen", i === this.chosen);
      if (this.open) element.setAttribute("aria-selected", String(i === this.chosen));
      element.style.top = `${Math.round((i - first) * this.height + above)}px`;
    }
    if (this.near && this.count) this.near(Math.min(this.count, to), from);
  }

  get name() {
    this.named ??= `w${Math.random().toString(36).slice(2)}`;
    return this.named;
  }

  choose(index) {
    if (!this.count) return;
    this.chosen = Math.max(0, Math.min(this.count - 1, index));
    const head = this.element.firstElementChild === this.space ? 0 : this.element.firstElementChild.offsetHeight;
    const tall = this.count * this.height > MOST_PIXELS;
    const share = tall ? (this.space.offsetHeight - this.element.clientHeight) / (this.count * this.height - this.element.clientHeight) : 1;
    const top = this.chosen * this.height * share;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + this.height + head > this.element.scrollTop + this.element.clientHeight) {
      this.element.scrollTop = top + this.height + head - this.element.clientHeight;
    }
    this.draw();
    const chosen = this.shown.get(this.chosen);
    if (chosen) this.element.setAttribute("aria-activedescendant", chosen.id);
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves && this.open) {
      event.preventDefault();
      this.choose((this.chosen < 0 && moves[event.key] > 0 ? -1 : this.chosen) + moves[event.key]);
    } else if (event.key === "Enter" && this.open && this.chosen >= 0) {
      event.preventDefault();
      this.open(this.chosen);
    }
  }

  clicked(event) {
    const row = event.target.closest("[data-index]");
    if (!this.open || !row || event.target.closest("a, button")) return;
    this.chosen = Number(row.dataset.index);
    this.open(this.chosen);
  }
}
