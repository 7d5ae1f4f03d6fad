// The page's own session on the gateway: what USE, SET and temporary views change stays until the page is left.

import { get, post, remove, segment } from "./api.js";

let session = null;

export async function sessionId() {
  session ??= post("sessions", { session_confs: {} }).then((told) => told.session_id);
  try {
    return await session;
  } catch (error) {
    session = null;
    throw error;
  }
}

export function forget() {
  session = null;
}

// Runs a statement until it has ended; `told(answer)` is called meanwhile. Gives the last answer.
export async function execute(statement, told = () => {}, limit = null) {
  const wanted = { statement, ...(limit ? { row_limit: limit } : {}) };
  let answer;
  try {
    answer = await post("run", { ...wanted, session_id: await sessionId() });
  } catch (error) {
    if (error.status !== 404) throw error;
    forget(); // it has ended for its idleness, or with the gateway
    answer = await post("run", { ...wanted, session_id: await sessionId() });
  }
  told(answer);
  while (["PENDING", "RUNNING"].includes(answer.status.state)) {
    answer = await get(`results/${segment(answer.statement_id)}`, { wait_timeout: "5s" });
    told(answer);
  }
  return answer;
}

export function done(identifier) {
  return remove(`results/${segment(identifier)}`).catch(() => null); // it ends by itself in a while
}

// Rows of a small answer, as objects by column.
export async function small(statement, most = 500) {
  const answer = await execute(statement, undefined, most);
  if (answer.status.state !== "SUCCEEDED") throw new Error(answer.status.error?.message || `The statement was ${answer.status.state.toLowerCase()}.`);
  const columns = (answer.manifest.schema.columns || []).map((column) => column.name);
  const found = answer.manifest.total_row_count ? (await get(`results/${segment(answer.statement_id)}/rows`, { start: 0, count: most })).rows : [];
  done(answer.statement_id);
  return { columns, rows: found };
}

window.addEventListener("pagehide", () => {
  session?.then((identifier) => remove(`sessions/${segment(identifier)}`, { keepalive: true })).catch(() => null);
  session = null;
});
