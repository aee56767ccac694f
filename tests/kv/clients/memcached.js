// npm memcached with typical use.
'use strict';
const assert = require('assert');
const { promisify } = require('util');
const Memcached = require('memcached');

const [host, port] = process.argv.slice(2);

async function main() {
  const client = new Memcached(`${host}:${port}`, { retries: 0, timeout: 60000, idle: 60000 });
  const call = (name, ...words) => promisify(client[name].bind(client))(...words);
  assert.strictEqual(await call('set', 'node', 'value', 100), true);
  assert.strictEqual(await call('get', 'node'), 'value');
  await assert.rejects(call('add', 'node', 'x', 100), /not stored/);
  assert.strictEqual(await call('replace', 'node', 'new', 100), true);
  assert.strictEqual(await call('append', 'node', '!'), true);
  assert.strictEqual(await call('prepend', 'node', '?'), true);
  assert.strictEqual(await call('get', 'node'), '?new!');
  await call('set', 'n', 41, 100);
  assert.strictEqual(await call('incr', 'n', 1), 42);
  assert.strictEqual(await call('decr', 'n', 2), 40);
  const { cas } = await call('gets', 'node');
  assert.strictEqual(await call('cas', 'node', 'third', cas, 100), true);
  assert.strictEqual(await call('cas', 'node', 'late', cas, 100), false);
  assert.deepStrictEqual(await call('getMulti', ['node', 'n', 'none']), { node: 'third', n: 40 });
  assert.strictEqual(await call('set', 'object', { a: [1, 2, 3] }, 100), true);
  assert.deepStrictEqual(await call('get', 'object'), { a: [1, 2, 3] });
  const binary = Buffer.from(Array.from({ length: 50000 }, (_, i) => i & 255));
  await call('set', 'binary', binary, 100);
  assert.ok(binary.equals(await call('get', 'binary')));
  assert.strictEqual(await call('touch', 'node', 1000), true);
  await Promise.all(Array.from({ length: 500 }, (_, i) => call('set', `k${i}`, `${i}`, 100)));
  assert.strictEqual(await call('get', 'k499'), '499');
  assert.strictEqual(await call('del', 'node'), true);
  assert.strictEqual(await call('get', 'node'), undefined);
  const [stats] = await call('stats');
  assert.strictEqual(stats.curr_items, 503);
  assert.ok((await call('version'))[0].version.startsWith('1.6'));
  await call('flush');
  assert.strictEqual(await call('get', 'n'), undefined);
  client.end();
  console.log('all good');
}

main().catch((error) => { console.error(error); process.exit(1); });
