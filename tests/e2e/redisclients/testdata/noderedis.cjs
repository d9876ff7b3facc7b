// node-redis with its defaults.
const assert = require('node:assert');
const { createClient } = require('redis');

(async () => {
  const c = createClient({ url: `redis://${process.argv[2]}:${process.argv[3]}` });
  c.on('error', (err) => { console.error(err); process.exit(1); });
  await c.connect();
  assert.strictEqual(await c.incr('seq:4001'), 1);
  assert.strictEqual(await c.incrBy('seq:4001', 10), 11);
  assert.strictEqual(await c.get('seq:4001'), '11');
  assert.strictEqual(await c.get('seq:4999'), null);
  assert.deepStrictEqual(await c.multi().incr('seq:4002').incr('seq:4002').exec(), [1, 2]);
  const many = await Promise.all([...Array(300)].map(() => c.incr('seq:4003')));
  assert.deepStrictEqual(many, [...Array(300)].map((_, i) => i + 1));
  const ids = await Promise.all([...Array(500)].map(() => c.incr('snowflake:default')));
  assert.strictEqual(new Set(ids).size, 500);
  await assert.rejects(c.set('seq:1', '5'), /unknown command 'SET'.*known are/);
  await c.quit();
  console.log('done');
})().catch((err) => { console.error(err); process.exit(1); });
