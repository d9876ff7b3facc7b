// node noderedis-bench.cjs bench HOST:PORT: how many numbers a second SEQ_CALLERS callers of node-redis get in SEQ_SECONDS, as JSON.
const { createClient } = require('redis');

(async () => {
  const c = createClient({ url: `redis://${process.argv[3]}` });
  await c.connect();
  const warm = performance.now() + 1000;
  const end = warm + 1000 * Number(process.env.SEQ_SECONDS ?? 3);
  let taken = 0;
  await Promise.all(Array.from({ length: Number(process.env.SEQ_CALLERS ?? 64) }, async (_, i) => {
    for (let last = 0; ;) {
      const begun = performance.now();
      if (begun >= end) return;
      const n = await c.incr(`seq:${20_000 + i}`);
      if (!(n > last)) throw new Error(`${n} after ${last}`);
      last = n;
      if (begun >= warm) taken++;
    }
  }));
  console.log(JSON.stringify({ rate: Math.round(taken / (end - warm) * 1000) }));
  await c.quit();
})().catch((err) => { console.error(err); process.exit(1); });
