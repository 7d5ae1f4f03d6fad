// A place to write SQL, run it, and look at the answer as rows, a chart or a plan.

import { post, segment } from "./api.js";
import { chartView } from "./chart.js";
import { completions } from "./completion.js";
import { button, el, fill, notice } from "./dom.js";
import { count, duration, oneLine, rowsOf, seen } from "./format.js";
import { highlighted } from "./highlight.js";
import { watch } from "./live.js";
import { planView } from "./plan.js";
import { Result, downloads, resultTable } from "./results.js";
import { done, execute } from "./session.js";
import { statementAt } from "./split.js";
import { taken } from "./tabs.js";
import { remember, remembered } from "./texts.js";

const COLOURED = 50_000, LIMIT = 1_000_000;
const EXAMPLE = "SELECT n_name, count(*) AS customers, sum(c_acctbal) AS balance\nFROM samples.tpch.nation JOIN samples.tpch.customer ON n_nationkey = c_nationkey\nGROUP BY n_name ORDER BY customers DESC";
const where = { catalog: "main", schema: "default" };
let kept = null; // the text, while other views are looked at

function follow(statement) {
  const name = "(`(?:[^`]|``)*`|[\\p{L}_][\\p{L}\\p{N}_]*)";
  const used = new RegExp(`^\\s*use\\s+(?:(catalog|schema|database)\\s+)?${name}(?:\\.${name})?\\s*$`, "iu").exec(statement);
  if (!used) return;
  const [, what, one, two] = used.map((part) => part?.replace(/^`|`$/g, "").replaceAll("``", "`"));
  if (/^catalog$/i.test(what || "")) where.catalog = one;
  else if (two) [where.catalog, where.schema] = [one, two];
  else where.schema = one;
}

export function editorView(place) {
  const given = taken();
  const area = el("textarea", { id: "sql", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "soft", "aria-label": "SQL", "aria-describedby": "editor-keys", "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": "completions" });
  area.value = given ?? kept ?? remembered()[0] ?? EXAMPLE;
  const colours = el("pre", { class: "colours", "aria-hidden": "true" });
  const list = el("ul", { id: "completions", role: "listbox", hidden: true, "aria-label": "Completions" });
  const box = el("div", { class: "editor-box" }, colours, area, list);
  const answer = el("section", { class: "answer", "aria-live": "polite", "aria-label": "Answer" });
  const running = { id: null, asked: 0, stopped: false };
  let wrong = null; // where the piece is that the last error is about, until the text changes
  let offered = { from: 0, items: [] }, chosen = 0, asking = 0, shownResult = null;

  const run = button("Run", () => start(""), { class: "primary", title: "Ctrl+Enter: what is selected, or the statement at the cursor" });
  const explain = button("Explain", () => start("EXPLAIN "), { title: "How it would be run" });
  const analyze = button("Analyze", () => start("EXPLAIN ANALYZE "), { title: "Runs it and measures each operator" });
  const stop = button("Stop", () => { running.stopped = true; stopIt(); }, { class: "danger", disabled: true });
  const history = el("select", { "aria-label": "Texts of this tab", onchange: (event) => {
    const text = remembered()[Number(event.target.value)];
    if (text !== undefined) replaceAll(text);
    event.target.value = "";
    area.focus();
  } });

  function listHistory() {
    fill(history, el("option", { value: "" }, "History"), remembered().map((text, i) => el("option", { value: i }, oneLine(text, 90))));
  }

  function replaceAll(text) {
    area.value = text;
    paint();
  }

  function paint() {
    kept = area.value;
    const plain = area.value.length > COLOURED;
    box.classList.toggle("plain", plain);
    fill(colours, plain ? [] : highlighted(area.value, true, wrong), "\n");
    colours.scrollTop = area.scrollTop;
  }

  // ------------------------------------------------------------------------------------------------------- completion

  function close() {
    asking += 1;
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  async function offer() {
    const mine = ++asking;
    const at = area.selectionStart;
    const found = await completions(area.value, at, where);
    if (mine !== asking || at !== area.selectionStart || document.activeElement !== area) return;
    offered = found;
    chosen = 0;
    if (!found.items.length) {
      close();
      return;
    }
    fill(list, found.items.map((item, i) => el("li", { role: "option", id: `completion-${i}`, onmousedown: (event) => { event.preventDefault(); take(i); } },
      el("bdi", null, seen(item.text)), el("small", null, seen(item.told || item.kind)))));
    const [x, y] = cursor(found.from);
    list.style.left = `${Math.max(0, Math.min(x, box.clientWidth - 280))}px`;
    list.style.top = `${y}px`;
    list.hidden = false;
    mark();
  }

  // Where a place of the text is seen, below its line.
  function cursor(at) {
    const probe = el("span", null, "\u200b");
    fill(colours, area.value.slice(0, at), probe, area.value.slice(at), "\n");
    colours.scrollTop = area.scrollTop;
    const spot = [probe.offsetLeft - colours.scrollLeft, probe.offsetTop - area.scrollTop + probe.offsetHeight + 2];
    paint();
    return spot;
  }

  function mark() {
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", `completion-${chosen}`);
  }

  function take(index) {
    const item = offered.items[index];
    area.setRangeText(item.text, offered.from, area.selectionStart, "end");
    close();
    paint();
  }

  area.addEventListener("input", (event) => {
    wrong = null;
    paint();
    const before = area.value.slice(Math.max(0, area.selectionStart - 2), area.selectionStart);
    if (event.inputType === "insertText" && (/[\p{L}_][\p{L}\p{N}_]$/u.test(before) || before.endsWith("."))) offer();
    else if (!list.hidden) offer();
    else close();
  });
  area.addEventListener("scroll", () => { colours.scrollTop = area.scrollTop; });
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  area.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      close();
      start("");
    } else if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      offer();
    } else if (list.hidden) {
      return;
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + offered.items.length) % offered.items.length;
      mark();
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Escape") close();
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") close();
  });

  // ---------------------------------------------------------------------------------------------------------- running

  function wanted() {
    if (area.selectionStart !== area.selectionEnd) return [area.selectionStart, area.selectionEnd];
    return statementAt(area.value, area.selectionStart);
  }

  // Ends what runs, once its name is known: a statement that is short is told when it has ended.
  async function stopIt() {
    if (!running.stopped || !running.id) return;
    running.stopped = false;
    try {
      await post(`statements/${segment(running.id)}/kill`);
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  async function start(prefix) {
    const [from, to] = wanted();
    const statement = area.value.slice(from, to);
    if (!statement.trim()) return;
    remember(area.value);
    listHistory();
    wrong = null;
    paint();
    const mine = ++running.asked;
    const began = performance.now();
    [run.disabled, explain.disabled, analyze.disabled, stop.disabled] = [true, true, true, false];
    const waits = el("p", { class: "waits" }, "Running …");
    fill(answer, waits);
    let stage = "";
    const clock = setInterval(() => { waits.textContent = `Running … ${duration(performance.now() - began)}${stage}`; }, 200);
    const watched = watch((now) => {
      const told = now?.operations.find((one) => one.statement_id === running.id);
      const share = told?.progress ? `, ${Math.round(told.progress * 100)} %` : "";
      stage = told ? `${share}${told.progress_text ? ` · ${seen(told.progress_text)}` : ""}` : "";
    });
    running.stopped = false;
    try {
      if (shownResult) done(shownResult.identifier);
      shownResult = null;
      const told = await execute(prefix + statement.trim(), (state) => {
        running.id = state.statement_id;
        if (["PENDING", "RUNNING"].includes(state.status.state)) stopIt();
      }, LIMIT);
      if (mine !== running.asked) return;
      const spent = duration(performance.now() - began);
      if (told.status.state !== "SUCCEEDED") showError(told, from + (statement.length - statement.trimStart().length), prefix);
      else await show(told, spent, prefix);
      if (told.status.state === "SUCCEEDED" && !prefix) follow(statement.trim());
    } catch (error) {
      fill(answer, el("p", { class: "notice bad" }, error.message));
    } finally {
      clearInterval(clock);
      watched();
      running.id = null;
      [run.disabled, explain.disabled, analyze.disabled, stop.disabled] = [false, false, false, true];
    }
  }

  function showError(told, from, prefix) {
    const message = told.status.error?.message || `The statement was ${told.status.state.toLowerCase()}.`;
    const at = /\(line (\d+), position (\d+)\)/.exec(message); // counted from one
    if (at && !prefix) {
      wrong = pieceAt(from, Number(at[1]), Number(at[2]), /\n *(\^+)$/.exec(message)?.[1].length || 1);
      paint();
    }
    fill(answer, el("section", { class: "error-box", role: "alert" },
      el("h2", null, told.status.state === "CANCELED" ? "Stopped" : "Error", told.status.sql_state && el("small", null, ` SQLSTATE ${told.status.sql_state}`)),
      el("pre", { dir: "auto" }, seen(message)),
      el("p", { class: "buttons" },
        at && !prefix && button("Go to the place", () => goTo(wrong || pieceAt(from, Number(at[1]), Number(at[2]), 1))),
        el("a", { href: `#/statements/${segment(told.statement_id)}` }, "The statement in full"))));
  }

  // Where a piece of so many characters begins and ends whose line and column are counted from one, from a statement's beginning.
  function pieceAt(from, line, column, length) {
    let at = from;
    for (let i = 1; i < line; i++) at = area.value.indexOf("\n", at) + 1 || area.value.length;
    const units = (begin, characters) => [...area.value.slice(begin, begin + 2 * characters)].slice(0, characters).join("").length;
    at += units(at, column - 1);
    return [at, at + Math.max(1, units(at, length))];
  }

  function goTo([begin, end]) {
    area.focus();
    area.setSelectionRange(begin, end);
  }

  async function show(told, spent, prefix) {
    const result = new Result(told.statement_id, told.manifest);
    shownResult = result;
    const statement = el("a", { href: `#/statements/${segment(told.statement_id)}` }, "what it did");
    if (!result.columns.length) {
      fill(answer, el("p", { class: "figures-line" }, `Done in ${spent}. `, statement));
      return;
    }
    if (prefix && result.total === 1 && result.columns.length === 1) {
      const text = (await result.first(1))[0][0];
      fill(answer, el("p", { class: "figures-line" }, `${spent} · `, statement), planView(text));
      return;
    }
    const body = el("div", { class: "answer-body" });
    const tabs = [["Table", () => resultTable(result)], ["Chart", () => chartView(result)]];
    let turn = 0;
    const buttons = tabs.map(([name, make]) => button(name, async () => {
      const mine = ++turn;
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.textContent === name)));
      try {
        const made = await make();
        if (mine !== turn) return; // the other one was asked for meanwhile
        fill(body, made);
        result.changed();
      } catch (error) {
        if (mine === turn) fill(body, el("p", { class: "notice bad" }, error.message));
      }
    }));
    fill(answer, el("div", { class: "answer-bar" },
      el("div", { class: "buttons", role: "group", "aria-label": "Show as" }, buttons),
      el("span", { class: "figures-line" }, `${rowsOf(result.total)}${result.truncated ? ` (cut at ${count(LIMIT)})` : ""} in ${spent} · `, statement),
      el("div", { class: "buttons", role: "group", "aria-label": "Download" }, result.total ? downloads(result) : [])), body);
    buttons[0].click();
  }

  fill(place, el("h1", { class: "unseen" }, "Editor"), box,
    el("div", { class: "editor-bar buttons" }, run, explain, analyze, stop, history, el("span", { class: "hint", id: "editor-keys" }, "Ctrl+Enter runs, Ctrl+Space completes")), answer);
  listHistory();
  paint();
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
  const resized = new ResizeObserver(() => paint());
  resized.observe(area);
  return () => {
    resized.disconnect();
    if (shownResult) done(shownResult.identifier);
  };
}
