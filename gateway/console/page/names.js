// What there is in the catalogs, asked for once and kept for a while: for the tree and for completion.

import { get } from "./api.js";

const KEPT_MS = 60_000;
const known = new Map();

export function below(catalog = "", schema = "", table = "") {
  const key = JSON.stringify([catalog, schema, table]);
  const found = known.get(key);
  if (found && Date.now() - found.at < KEPT_MS) return found.items;
  const items = get("catalog", { catalog, schema, table });
  known.set(key, { at: Date.now(), items });
  items.catch(() => known.delete(key));
  return items;
}

export function forgetNames() {
  known.clear();
}
