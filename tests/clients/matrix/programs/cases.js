// The cases through @databricks/sql: reads the order from standard input, writes the lines of say.py.
// Started in the folder whose node_modules has the driver; NODE_EXTRA_CA_CERTS trusts the server.
'use strict';
const { createRequire } = require('module');
const path = require('path');
const load = createRequire(path.join(process.argv[2], 'package.json'));
const { DBSQLClient } = load('@databricks/sql');

function text(value) {
  if (value === null || value === undefined) return 'NULL';
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return value.toISOString().replace('T', ' ').replace('Z', '').replace(/\.?0+$/, '');
  if (typeof value === 'object') return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? Number(v) : v));
  return String(value);
}

const rows = (found) => found.map((row) => Object.values(row).map(text));
const quiet = { log() {} };

async function main() {
  const order = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  const [host, port] = order.https.replace('https://127.0.0.1', 'localhost').split(':');
  const client = new DBSQLClient({ logger: quiet });
  const settings = { host, port: Number(port), path: order.path, token: 'none-needed', telemetryEnabled: false };
  await client.connect(settings);
  const session = await client.openSession();
  const all = async (operation) => {
    const found = await operation.fetchAll();
    await operation.close();
    return found;
  };
  const query = async (statement, options) => all(await session.executeStatement(statement, options));
  const sum = async (statement, maxRows) => {
    const operation = await session.executeStatement(statement, { maxRows });
    let count = 0;
    let total = 0;
    do {
      for (const row of await operation.fetchChunk({ maxRows })) {
        count += 1;
        total += Number(row.id);
      }
    } while (await operation.hasMoreRows());
    await operation.close();
    return { rows: count, sum: total };
  };
  const cases = {
    connect: async (s) => rows(await query(s)),
    types: async (s) => rows(await query(s))[0],
    nulls: async (s) => rows(await query(s))[0],
    page: (s) => sum(s, 1000),
    large: (s) => sum(s, 100000),
    cancel: async (s) => {
      const operation = await session.executeStatement(s, { maxRows: null });
      const ended = operation.finished().then(() => 'rows', () => 'error');
      await new Promise((done) => setTimeout(done, 1000));
      const start = Date.now();
      await operation.cancel();
      const how = await ended;
      return { ended: how, seconds: (Date.now() - start) / 1000, after: rows(await query('SELECT 1'))[0][0] };
    },
    error: async (s) => {
      try {
        await query(s);
      } catch (error) {
        return { text: String(error.message), state: error.response && error.response.sqlState };
      }
      return { text: 'none' };
    },
    metadata: async () => {
      const tables = await all(await session.getTables({ catalogName: 'main', schemaName: 'matrix' }));
      const named = { catalogName: 'main', schemaName: 'matrix', tableName: 'shapes' };
      const columns = await all(await session.getColumns(named));
      return { tables: tables.map((t) => t.TABLE_NAME), columns: columns.map((c) => c.COLUMN_NAME) };
    },
    parameters: async (s) => rows(await query(s.replace(/\{\}/g, '?'), { ordinalParameters: [41, "o'b"] })),
    write: async (...statements) => {
      let seen = null;
      for (const statement of statements) {
        const found = await query(statement);
        if (statement.startsWith('SELECT')) seen = rows(found);
      }
      return seen;
    },
  };
  console.log(JSON.stringify({ version: load('@databricks/sql/package.json').version }));
  for (const [name, statements] of Object.entries(order.cases)) {
    let line;
    try {
      line = { case: name, seen: await cases[name](...statements) };
    } catch (error) {
      line = { case: name, failed: String(error.message) };
    }
    console.log(JSON.stringify(line));
  }
  await session.close();
  await client.close();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
