// npm ioredis with typical use: INFO on connect (the ready check), pipelines, MULTI, scan streams, buffers.
'use strict';
const assert = require('assert');
const Redis = require('ioredis');

const [host, port] = process.argv.slice(2);

function scan(client, match) {
  return new Promise((resolve, reject) => {
    const found = new Set();
    const stream = client.scanStream({ match, count: 7 });
    stream.on('data', (keys) => keys.forEach((k) => found.add(k)));
    stream.on('end', () => resolve(found));
    stream.on('error', reject);
  });
}

async function main() {
  const client = new Redis({ host, port: Number(port), connectionName: 'io', maxRetriesPerRequest: 1 });
  assert.strictEqual(await client.set('io', 'value', 'PX', 100000), 'OK');
  assert.strictEqual(await client.get('io'), 'value');
  assert.ok((await client.pttl('io')) > 0);
  assert.strictEqual(await client.getset('io', 'new'), 'value');
  assert.strictEqual(await client.setnx('io', 'x'), 0);
  assert.strictEqual(await client.incrbyfloat('f', 1.5), '1.5');
  const pipeline = client.pipeline();
  for (let i = 0; i < 500; i++) {
    pipeline.set(`p:${i}`, i);
  }
  assert.ok((await pipeline.exec()).every(([error, reply]) => error === null && reply === 'OK'));
  assert.strictEqual((await scan(client, 'p:*')).size, 500);
  assert.deepStrictEqual(await client.multi().incr('p:1').get('p:1').exec(), [[null, 2], [null, '2']]);
  const [[error]] = await client.pipeline().incr('io').exec();
  assert.ok(/not an integer/.test(error.message));
  const binary = Buffer.from(Array.from({ length: 70000 }, (_, i) => (i * 7) & 255));
  await client.set(Buffer.from([0, 1, 255]), binary);
  assert.ok(binary.equals(await client.getBuffer(Buffer.from([0, 1, 255]))));
  assert.deepStrictEqual(await client.mget('p:2', 'none'), ['2', null]);
  assert.strictEqual(await client.client('GETNAME'), 'io');
  await assert.rejects(client.hset('h', 'f', 'v'), /unknown command/);
  assert.strictEqual(await client.flushall(), 'OK');
  assert.strictEqual(await client.dbsize(), 0);
  assert.strictEqual(await client.quit(), 'OK');
  console.log('all good');
}

main().catch((error) => { console.error(error); process.exit(1); });
