// npm redis with typical use: RESP2 and RESP3 on connect, strings, expiry, scan, MULTI, errors, QUIT.
'use strict';
const assert = require('assert');
const { commandOptions, createClient } = require('redis');

const [host, port] = process.argv.slice(2);

async function typicalUse(client) {
  assert.strictEqual(await client.ping(), 'PONG');
  assert.strictEqual(await client.set('node', 'value', { EX: 100, NX: true }), 'OK');
  assert.strictEqual(await client.set('node', 'other', { NX: true }), null);
  assert.strictEqual(await client.get('node'), 'value');
  assert.ok((await client.ttl('node')) > 0);
  assert.strictEqual(await client.incrBy('n', 41), 41);
  assert.strictEqual(await client.incr('n'), 42);
  assert.strictEqual(await client.mSet([['a', '1'], ['b', '2']]), 'OK');
  assert.deepStrictEqual(await client.mGet(['a', 'b', 'none']), ['1', '2', null]);
  assert.strictEqual(await client.append('a', '23'), 3);
  assert.strictEqual(await client.getRange('a', 1, 2), '23');
  assert.deepStrictEqual(await client.multi().set('m', '1').incr('m').get('m').exec(), ['OK', 2, '2']);
  const binary = Buffer.from(Array.from({ length: 10000 }, (_, i) => i & 255));
  await client.set('binary', binary);
  assert.ok(binary.equals(await client.get(commandOptions({ returnBuffers: true }), 'binary')));
  const found = new Set();
  for await (const key of client.scanIterator({ MATCH: '*', COUNT: 3 })) {
    found.add(key);
  }
  assert.deepStrictEqual([...found].sort(), ['a', 'b', 'binary', 'm', 'n', 'node']);
  await assert.rejects(client.sendCommand(['LPUSH', 'l', '1']), /unknown command/);
  // Many in flight: one write, replies in order.
  const replies = await Promise.all(Array.from({ length: 1000 }, (_, i) => client.set(`k${i}`, `${i}`)));
  assert.ok(replies.every((r) => r === 'OK'));
  assert.strictEqual(await client.dbSize(), 1006);
  assert.strictEqual(await client.del(['a', 'b', 'none']), 2);
  assert.ok((await client.info('server')).includes('redis_version'));
}

async function main() {
  const client = createClient({ socket: { host, port: Number(port) }, name: 'node' });
  client.on('error', (error) => { throw error; });
  await client.connect();
  await typicalUse(client);
  assert.strictEqual(await client.clientGetName(), 'node');
  await client.watch('m');
  const second = client.duplicate();
  await second.connect();
  await second.set('m', 'changed');
  await assert.rejects(client.multi().set('m', 'late').exec(), /watched/i);
  await second.flushAll();
  await second.quit();
  await client.quit();
  console.log('all good');
}

main().catch((error) => { console.error(error); process.exit(1); });
