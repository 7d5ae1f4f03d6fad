// Calls of the server. Who is not signed in any more is asked to.

const API = "/console/api/";

export class CallError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

let signedOut = () => {};

export function whenSignedOut(action) {
  signedOut = action;
}

async function fetched(method, path, body, options) {
  const headers = method === "GET" ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(API + path, {
      method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", cache: "no-store",
      ...options,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, "UNREACHABLE", "The gateway does not answer.");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401 && path !== "sign-in") signedOut();
  throw new CallError(answer.status, told.error_code || String(answer.status), told.message || answer.statusText);
}

export async function get(path, query, options) {
  const text = query ? "?" + new URLSearchParams(Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "")) : "";
  return (await fetched("GET", path + text, undefined, options)).json();
}

export async function post(path, body = {}, options) {
  return (await fetched("POST", path, body, options)).json();
}

export async function remove(path, options) {
  return (await fetched("DELETE", path, {}, options)).json();
}

export async function bytes(path, query) {
  return (await fetched("GET", `${path}?${new URLSearchParams(query)}`)).arrayBuffer();
}

export const segment = encodeURIComponent;
