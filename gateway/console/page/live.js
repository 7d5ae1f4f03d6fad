// What runs now, asked for again and again while somebody looks, and told to whoever wants it.

import { get } from "./api.js";
import { released } from "./dom.js";

const LOOK_MS = 1000, IDLE_MS = 2500, FAILED_MS = 5000;
const listeners = new Set();
let latest = null, timer = null, asking = false, on = false;

async function look() {
  timer = null;
  if (!on || asking || document.hidden) return;
  asking = true;
  let wait = FAILED_MS;
  try {
    latest = { ...(await get("now")), at: Date.now() };
    wait = latest.operations.length ? LOOK_MS : IDLE_MS;
    await released();
    for (const listener of [...listeners]) listener(latest, null);
  } catch (error) {
    for (const listener of [...listeners]) listener(latest, error);
  } finally {
    asking = false;
    if (on && !timer) timer = setTimeout(look, wait);
  }
}

export function lookNow() {
  clearTimeout(timer);
  timer = null;
  return look();
}

// Calls `listener(now, error)` from now on, at once if something is known; gives what ends that.
export function watch(listener) {
  listeners.add(listener);
  if (latest) listener(latest, null);
  lookNow();
  return () => listeners.delete(listener);
}

export function start() {
  on = true;
  lookNow();
}

export function stop() {
  on = false;
  latest = null;
  clearTimeout(timer);
  timer = null;
}

document.addEventListener("visibilitychange", () => !document.hidden && on && lookNow());
