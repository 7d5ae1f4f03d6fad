// What there is in the catalogs, asked for once and kept for a while: for the tree and for completion.

import { get } from "./api.js";
import { quoted } from "./format.js";
import { small } from "./session.js";

const KEPT_MS = 60_000;
const SYSTEM = "system", SYSTEM_SCHEMAS = ["access", "information_schema", "query", "runtime"];
const known = new Map();

export function below(catalog = "", schema = "", table = "") {
  const key = JSON.stringify([catalog, schema, table]);
  const found = known.get(key);
  if (found && Date.now() - found.at < KEPT_MS) return found.items;
  const items = catalog === SYSTEM ? ofSystem(schema, table) : get("catalog", { catalog, schema, table });
  known.set(key, { at: Date.now(), items });
  items.catch(() => known.delete(key));
  return items;
}

// Metadata calls leave out what the gateway computes: statements tell of it.
async function ofSystem(schema, table) {
  if (!schema) return { kind: "schemas", items: SYSTEM_SCHEMAS.map((name) => ({ name })), more: false };
  const place = [SYSTEM, schema, table].filter(Boolean).map(quoted).join(".");
  const found = await small(table ? `DESCRIBE ${place}` : `SHOW TABLES IN ${place}`, 500);
  const items = table ? found.rows.map(([name, type, comment]) => ({ name, type: type.toUpperCase(), nullable: "", comment })) : found.rows.map(([, name]) => ({ name }));
  return { kind: table ? "columns" : "tables", items, more: false };
}

export async function catalogs() {
  const found = await below();
  return { ...found, items: [...found.items, { name: SYSTEM, comment: "what the gateway tells of itself" }] };
}

export function forgetNames() {
  known.clear();
}
