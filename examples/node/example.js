// node example.js [ROUTER]: takes numbers and IDs, and compares single with gathered calls.
// Its last line is what it measured, as JSON.
import { Gather, connect, method } from './seqsvr.js';

const addr = process.argv[2] ?? process.env.SEQ_ADDR ?? '127.0.0.1:7400';
const { sequence, snowflake } = connect(addr);
const next = method(sequence, 'Next');
const gather = new Gather(sequence);

console.log('next of 42:', (await next({ uid: 42 })).first);
console.log('a range:', await next({ uid: 42, count: 100 }).then((r) => `${r.first}..${r.last}`));
console.log('of a string key:', (await next({ key: 'room:7' })).first);
console.log('snowflake ID:', (await method(snowflake, 'Generate')({})).ids[0]);
await next({ uid: 1, space: 'nosuch' }).catch((err) => console.log('refused:', err.details));
const refused = await new Gather(sequence, 'nosuch').next(1).catch((err) => err);

// rate is how many calls a second 512 callers get, each calling again at once.
async function rate(rounds, call) {
  const began = performance.now();
  await Promise.all(Array.from({ length: 512 }, async (_, i) => {
    for (let last = 0, round = 0; round < rounds; round++) {
      const number = await call(1000 + i);
      if (number <= last) throw new Error(`${1000 + i} got ${number} after ${last}`);
      last = number;
    }
  }));
  return Math.round((512 * rounds) / ((performance.now() - began) / 1000));
}
await rate(2, (uid) => gather.next(uid)); // the code is compiled, the connection there
const single = await rate(4, async (uid) => Number((await next({ uid })).first));
const gathered = await rate(100, (uid) => gather.next(uid));
console.log(JSON.stringify({ single, gathered, times: gathered / single, refused: refused.details ?? refused.message }));
process.exit(0);
