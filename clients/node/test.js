// node test.js PHASE ADDR...: asserts what a cluster answers. tests/languages runs it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import readline from 'node:readline';
import { Client, SeqError } from './index.js';

const [phase, ...addrs] = process.argv.slice(2);
const timeoutMs = 120_000; // on a busy machine
const base = Number(process.env.SEQ_BASE ?? 0); // of the keys, so that programs divide a cluster
const uid = (n) => base + n;
const client = (options) => new Client({ addrs, timeoutMs, connectMs: 60_000, silenceMs: 60_000, ...options });
const fails = (code, retryable) => (err) => {
  assert.ok(err instanceof SeqError, err.stack);
  assert.deepEqual([err.code, err.retryable], [code, retryable], err.message);
  return true;
};

const phases = {
  async calls() {
    const c = client();
    assert.equal(await c.next(uid(42)), 1);
    assert.deepEqual(await c.take(uid(42), { count: 100 }), { first: 2, last: 101, replayed: false });
    assert.equal(await c.current(uid(42)), 101);
    assert.equal(await c.current(uid(43)), 0);
    assert.equal(await c.raise(uid(42), 500), 500);
    assert.equal(await c.raise(uid(42), 5), 500);
    assert.equal(await c.next({ uid: BigInt(uid(42)) }), 501);
    assert.equal(await c.next(2n ** 64n - 1n - BigInt(base)), 1);
    for (const name of [`${base}`, `room:${base}`, `a/${base}`, `Zürich "${base}"`, `-${base}`]) {
      assert.equal(await c.next(name), 1, name);
      assert.equal(await c.next({ name }), 2, name);
      assert.equal(await c.next({ space: 'orders', name }), 1, name);
    }
    assert.deepEqual(await c.nextBatch([uid(1), uid(2), { key: `x:${base}`, count: 5 }, { space: 'nosuch', uid: 1 }, uid(1)])
      .then((all) => all.map((r) => [r.first, r.last, r.error?.code])),
    [[1, 1, undefined], [1, 1, undefined], [1, 5, undefined], [0, 0, 'UNKNOWN_SPACE'], [2, 2, undefined]]);

    const ids = await c.generate('default', 300);
    assert.equal(new Set(ids).size, 300);
    assert.ok(ids.every((id) => BigInt(id) > 2n ** 53n));
    await assert.rejects(c.segment('nosuch', 3), fails('UNKNOWN_TAG', false));

    const once = { requestId: 'msg-1', count: 3 };
    const orders = client({ space: 'orders' });
    assert.deepEqual(await orders.take(uid(7), once), { first: 1, last: 3, replayed: false });
    assert.deepEqual(await orders.take(uid(7), once), { first: 1, last: 3, replayed: true });
    assert.deepEqual(await orders.lookup(uid(7), 'msg-1'), { first: 1, last: 3, replayed: true });
    assert.equal(await orders.lookup(uid(7), 'msg-2'), null);
    assert.equal(await orders.next(uid(7)), 4);
    await assert.rejects(orders.take(uid(7), { requestId: 'msg-1' }), (err) => fails('ID_CONFLICT', false)(err) && err.first === 1 && err.count === 3);
    await assert.rejects(orders.take(uid(7), { requestId: 'old', firstSentMs: 1 }), fails('ID_EXPIRED', false));
    await assert.rejects(c.next(1, { requestId: 'a' }), fails('ID_NOT_KEPT', false));
    await assert.rejects(c.next({ space: 'nosuch', uid: 1 }), fails('UNKNOWN_SPACE', false));
    await assert.rejects(c.raise(uid(42), 2 ** 53 - 1), fails('RAISE_TOO_FAR', false));
    await assert.rejects(c.open(1), fails('NO_TICKETS', false));
    await assert.rejects(c.take(1, { count: 0 }), fails('BAD_ARGUMENT', false));
    for (const key of [-1, 1.5, 2 ** 53, 2n ** 64n, '', null, undefined, {}]) await assert.rejects(async () => c.next(key), fails('BAD_ARGUMENT', false));
    assert.throws(() => new Client({ addrs: ['localhost'] }), fails('BAD_ARGUMENT', false));

    const inbox = client({ space: 'inbox' });
    const u = `u:${base}`;
    await inbox.cancel(await inbox.open(u));
    assert.equal((await inbox.wait(u, 0, { withinMs: timeoutMs })).seq, 1); // a new owner knows marks after a ticket's life
    const [a, b] = [await inbox.open(u), await inbox.open(u, { count: 2, lifeMs: 9000 })];
    assert.deepEqual([a.first, b.first, b.last, a.lifeMs, b.lifeMs], [2, 3, 4, 10_000, 9000]);
    assert.ok(b.deadlineMs > Date.now() - timeoutMs);
    await inbox.done(b);
    assert.deepEqual(await inbox.mark(u).then(({ known, seq, last }) => [known, seq, last]), [true, 1, 4]);
    const waited = inbox.wait(u, 1, { withinMs: timeoutMs });
    const watched = inbox.watch(u, 1);
    const first = watched.next();
    await inbox.done(a);
    assert.equal((await waited).seq, 4);
    assert.deepEqual(await first.then(({ value }) => [value.after, value.seq]), [1, 4]);
    await inbox.cancel(await inbox.open(u));
    assert.deepEqual(await watched.next().then(({ value }) => [value.after, value.seq]), [4, 5]);
    await watched.return();
    assert.equal((await inbox.wait(u, 5, { withinMs: 1 })).seq, 5);
    await assert.rejects(inbox.done(a), fails('TICKET_ENDED', false));
    const quit = new AbortController();
    const given = inbox.wait(u, 5, { withinMs: timeoutMs, signal: quit.signal });
    quit.abort();
    await assert.rejects(given, fails('ABORTED', false));

    const many = await Promise.all(Array.from({ length: 300 }, () => c.next(uid(300))));
    assert.deepEqual(many, Array.from({ length: 300 }, (_, i) => i + 1));
    const left = c.next(uid(1));
    c.close();
    await assert.rejects(left, fails('CLOSED', false));
    await assert.rejects(c.next(uid(1)), fails('CLOSED', false));
    orders.close();
    inbox.close();
  },

  // The cluster counts how many pipelines 1,000 calls of one turn were.
  async coalesce() {
    const c = client();
    await c.next(uid(1));
    await Promise.all(Array.from({ length: 1000 }, (_, i) => c.next(uid(1000 + i))));
    assert.ok(c.stats.writes <= 3, `${c.stats.writes} writes`);
    c.close();
  },

  // Callers take without a pause while the router that serves them is killed, and go on at the other one.
  async failover() {
    let c = client();
    while (c.address !== addrs[0]) c = client();
    const input = readline.createInterface({ input: process.stdin });
    const killed = once(input, 'line');
    let over = false;
    const takers = Array.from({ length: 16 }, async (_, i) => {
      for (let last = 0, more = 50; more > 0; more -= over ? 1 : 0) {
        const n = await c.next(uid(5000 + i));
        assert.ok(n > last, `${n} after ${last}`);
        last = n;
      }
    });
    await c.next(uid(1));
    console.log('kill');
    await killed;
    const ordered = await client({ space: 'orders' }).take(uid(9), { requestId: 'over', count: 2 });
    over = true;
    await Promise.all(takers);
    assert.deepEqual([c.address, c.stats.connections > 1], [addrs[1], true]);
    assert.deepEqual(await client({ space: 'orders' }).take(uid(9), { requestId: 'over', count: 2 }), { ...ordered, replayed: true });
    const nowhere = new Client({ addrs: [addrs[0]], timeoutMs: 200 });
    await assert.rejects(nowhere.next(1), fails('DEADLINE', true));
    process.exit(console.log('done'));
  },

  async secure() {
    const ca = readFileSync(process.env.SEQ_CA);
    const c = client({ tls: { ca }, token: process.env.SEQ_TOKEN });
    assert.equal(await c.next(uid(42)), 1);
    c.close();
    const wrong = client({ tls: { ca }, token: 'swordfish' });
    await assert.rejects(wrong.next(42), fails('UNAUTHENTICATED', false));
    wrong.close();
    const plain = client({ timeoutMs: 1000 });
    await assert.rejects(plain.next(42), (err) => err.retryable);
    plain.close();
  },

  // How many numbers a second 64 callers get in SEQ_SECONDS, as JSON.
  async bench() {
    const c = client();
    const began = performance.now();
    const [warm, end] = [began + 1000, began + 1000 + 1000 * Number(process.env.SEQ_SECONDS ?? 3)];
    let taken = 0;
    await Promise.all(Array.from({ length: Number(process.env.SEQ_CALLERS ?? 64) }, async (_, i) => {
      for (let last = 0; ;) {
        const begun = performance.now();
        if (begun >= end) return;
        const n = await c.next(10_000 + i);
        if (!(n > last)) assert.fail(`${n} after ${last}`);
        last = n;
        if (begun >= warm) taken++;
      }
    }));
    console.log(JSON.stringify({ rate: Math.round(taken / (end - warm) * 1000) }));
    c.close();
  },
};

await phases[phase]();
if (phase !== 'bench') console.log('done');
