// The frame: who has signed in, which view is shown, light or dark, keys.

import { CallError, get, post, whenSignedOut } from "./api.js";
import { catalogView } from "./catalog.js";
import { button, el, fill, notice } from "./dom.js";
import { editorView } from "./editor.js";
import { healthView } from "./health.js";
import { start, stop, watch } from "./live.js";
import { pipelinesView } from "./pipelines.js";
import { sessionsView } from "./sessions.js";
import { settingsView } from "./settings.js";
import { statementView } from "./statement.js";
import { statementsView } from "./statements.js";
import { textsFor } from "./texts.js";

// Path, name, key, and what shows it: a function of the place, who looks, and the rest of the path, which gives what ends it.
const VIEWS = [
  ["statements", "Statements", "1", (place, me, [identifier]) => (identifier ? statementView(place, me, identifier) : statementsView(place, me))],
  ["editor", "Editor", "2", editorView],
  ["catalog", "Catalog", "3", catalogView],
  ["pipelines", "Pipelines", "4", pipelinesView],
  ["sessions", "Sessions", "5", sessionsView],
  ["health", "Health", "6", healthView],
  ["settings", "Settings", "7", settingsView, (who) => who.administrator],
];
const THEMES = ["system", "light", "dark"];

const content = document.getElementById("content");
let me = null, leave = null, shownPath = null, owner = null;

function parts() {
  const found = location.hash.replace(/^#\/?/, "").split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return found[0] ? found : ["statements"];
}

async function show() {
  if (!me) return;
  const [name, ...rest] = parts();
  const view = VIEWS.find(([path]) => path === name) || VIEWS[0];
  if (leave) leave();
  leave = null;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view[0]) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone they are wider than the screen
    } else link.removeAttribute("aria-current");
  }
  document.title = `${view[1]} · Delta SQL Gateway`;
  content.className = `view-${view[0]}`;
  content.scrollTop = 0;
  const place = el("div", { class: "view" }); // its own: what comes late fills nothing that is seen any more
  fill(content, place);
  const path = location.hash;
  shownPath = path;
  try {
    const end = await view[3](place, me, rest);
    if (shownPath === path) {
      leave = end || null;
      if (document.activeElement === document.body) content.focus({ preventScroll: true }); // what had it is gone
    } else if (end) end();
  } catch (error) {
    fill(place, el("p", { class: "notice bad" }, error.message));
    if (!(error instanceof CallError)) throw error;
  }
}

function theme() {
  try {
    return localStorage.getItem("theme") || "system";
  } catch {
    return "system";
  }
}

function setTheme(name) {
  try {
    localStorage.setItem("theme", name);
  } catch { /* a browser that keeps nothing: it holds for this page */ }
  document.documentElement.dataset.theme = name;
}

function frame() {
  fill(document.getElementById("views"), VIEWS.filter(([, , , , wanted]) => !wanted || wanted(me)).map(([path, name, key]) =>
    el("a", { href: `#/${path}`, "data-view": path, "aria-keyshortcuts": `Alt+${key}`, title: `Alt+${key}` }, name)));
  const choice = el("select", { "aria-label": "Colours", onchange: (event) => setTheme(event.target.value) },
    THEMES.map((name) => el("option", { value: name, selected: name === theme() }, name)));
  fill(document.getElementById("who"), choice,
    el("span", { class: "user", title: me.administrator ? "administrator: sees all statements" : "sees own statements" }, el("bdi", null, me.user)),
    me.signs_in && button("Sign out", signOut));
}

async function signOut() {
  try {
    await post("sign-out");
  } catch (error) {
    notice(error.message, "bad");
  }
  textsFor("");
  location.reload();
}

// Whether the page is of who calls by now. Else it is begun anew: what it holds of others is not theirs.
function isOf(user) {
  textsFor(user);
  owner ??= user;
  if (owner !== user) location.reload();
  return owner === user;
}

function signIn(told = "") {
  me = null;
  stop();
  if (leave) leave();
  leave = null;
  shownPath = null;
  fill(document.getElementById("views"));
  fill(document.getElementById("who"));
  content.className = "view-sign-in";
  const token = el("input", { type: "password", name: "token", autocomplete: "current-password", required: true, spellcheck: "false" });
  const trouble = el("p", { class: "notice bad", role: "alert", hidden: !told }, told);
  fill(content, el("form", { class: "sign-in", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await post("sign-in", { token: token.value.trim() });
      token.value = "";
      await begin();
    } catch (error) {
      trouble.hidden = false;
      trouble.textContent = error.message;
      token.select();
    }
  } }, el("h1", null, "Sign in"), el("label", null, "Token", token), trouble, el("button", { class: "primary" }, "Sign in"),
  el("p", { class: "hint" }, "The token that programs connect with. It is not kept by the browser.")));
  token.focus();
}

async function begin() {
  const found = await get("me");
  if (!isOf(found.user)) return;
  me = found;
  frame();
  start();
  await show();
}

document.addEventListener("keydown", (event) => {
  if (!me || event.ctrlKey || event.metaKey) return;
  if (event.altKey) {
    const view = VIEWS.find(([, , key]) => event.code === `Digit${key}`);
    if (view) {
      event.preventDefault();
      location.hash = `#/${view[0]}`;
    }
  } else if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    const field = content.querySelector("input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  }
});

setTheme(theme());
watch((now) => now && me && isOf(now.user)); // another tab may have signed in somebody else meanwhile
whenSignedOut(() => me && signIn("Sign in again: your sign-in has ended."));
window.addEventListener("hashchange", show);
begin().catch((error) => (error.status === 401 ? signIn() : fill(content, el("p", { class: "notice bad" }, error.message))));
