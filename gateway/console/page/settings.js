// The server's settings: what each is, and where it comes from.

import { get } from "./api.js";
import { el, fill } from "./dom.js";
import { seen } from "./format.js";

export async function settingsView(place) {
  const found = (await get("settings")).settings;
  const body = el("tbody");
  const draw = (text) => fill(body, found.filter((one) => `${one.name} ${one.meaning}`.toLowerCase().includes(text.toLowerCase())).map((one) =>
    el("tr", { class: one.origin === "default" ? "" : "is-set" }, el("th", { scope: "row", class: "whole" }, el("code", null, one.name)), el("td", null, one.value === null || one.value === "" ? el("span", { class: "null" }, "not set") : el("code", null, seen(one.value))), el("td", { class: "whole" }, seen(one.origin)), el("td", null, one.meaning))));
  fill(place, el("h1", null, "Settings"), el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", null, "Find ", el("input", { type: "search", oninput: (event) => draw(event.target.value) }))),
  el("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Settings" },
    el("table", { class: "plain-table" }, el("thead", null, el("tr", null, ["Setting", "Value", "Origin", "Meaning"].map((name) => el("th", { scope: "col" }, name)))), body)));
  draw("");
}
