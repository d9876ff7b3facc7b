// ioredis with its defaults: it asks INFO before it is ready.
const assert = require('node:assert');
const Redis = require('ioredis');

(async () => {
  const [host, port] = [process.argv[2], Number(process.argv[3])];
  const c = new Redis(port, host);
  assert.strictEqual(await c.incr('seq:3001'), 1);
  assert.strictEqual(await c.incrby('seq:3001', 10), 11);
  assert.strictEqual(await c.get('seq:3001'), '11');
  assert.deepStrictEqual(await c.mget('seq:3001', 'seq:3999'), ['11', null]);
  assert.deepStrictEqual(await c.multi().incr('seq:3002').incr('seq:3002').exec(), [[null, 1], [null, 2]]);
  const piped = await c.pipeline([...Array(300)].map(() => ['incr', 'seq:3003'])).exec();
  assert.deepStrictEqual(piped.map(([, n]) => n), [...Array(300)].map((_, i) => i + 1));
  const ids = await Promise.all([...Array(500)].map(() => c.incr('snowflake:default')));
  assert.strictEqual(new Set(ids).size, 500);
  assert.ok(ids.every((id) => typeof id === 'string' && BigInt(id) > 2n ** 53n), String(ids[0]));
  await assert.rejects(c.set('seq:1', 5), /unknown command 'set'.*known are/);
  await assert.rejects(c.watch('seq:1'), /WATCH is not supported/);
  await c.quit();

  // One that expects a cluster hears that this is none.
  const cluster = new Redis.Cluster([{ host, port }], { clusterRetryStrategy: () => null });
  const said = await new Promise((resolve) => cluster.on('error', resolve));
  assert.match(String(said.lastNodeError ?? said), /cluster support disabled/);
  cluster.disconnect();
  console.log('done');
})().catch((err) => { console.error(err); process.exit(1); });
