// Values as people read them.

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  const minutes = Math.floor(ms / 60000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function size(count) {
  if (count === null || count === undefined) return "–";
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit && count < 10 ? count.toFixed(1) : Math.round(count)} ${UNITS[unit]}`;
}

const NUMBERS = new Intl.NumberFormat("en");

export function count(value) {
  return value === null || value === undefined ? "–" : NUMBERS.format(value);
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export function moment(ms) {
  const when = new Date(ms);
  const clock = CLOCK.format(when);
  return when.toDateString() === new Date().toDateString() ? clock : `${DAY.format(when)} ${clock.slice(0, 5)}`;
}

export function wholeMoment(ms) {
  return new Date(ms).toISOString().replace("T", " ").replace("Z", " UTC");
}

export function rowsOf(number) {
  return `${count(number)} ${number === 1 ? "row" : "rows"}`;
}

// Characters that are not seen, or turn the reading direction, as a sign of their own.
const HIDDEN = /\udb40[\udc00-\udc7f]|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function seen(text) {
  return String(text).replace(HIDDEN, (c) => {
    const code = c.codePointAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

export function oneLine(text, most = 400) {
  return seen(String(text).slice(0, most).replace(/\s+/g, " ").trim());
}

const STATES = {
  INITIALIZED: ["Queued", "queued"],
  PENDING: ["Queued", "queued"],
  RUNNING: ["Running", "running"],
  FINISHED: ["Finished", "finished"],
  CANCELED: ["Cancelled", "canceled"],
  CLOSED: ["Closed early", "canceled"],
  ERROR: ["Failed", "failed"],
  TIMEDOUT: ["Timed out", "failed"],
};

// A state in a word, and the class that colours it.
export function stateOf(state) {
  return STATES[state] || [seen(state), ""];
}

export function quoted(name) {
  return `\`${name.replaceAll("`", "``")}\``;
}
