import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { browser as launch, cluster as startCluster, open, run, says, tab, until } from './cluster.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const GROWTH = Number(process.env.GROWTH || 10); // seconds

let cluster, browser;
before(async () => {
  cluster = await startCluster();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await cluster?.end();
});

// audit fails for what axe finds.
async function audit(page, where, rules) {
  await page.context().newCDPSession(page).then((cdp) => cdp.send('Runtime.evaluate', { expression: axe })); // past the page's policy
  const { violations } = await page.evaluate((only) => globalThis.axe.run(only ? { runOnly: only } : {}), rules);
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(' | ')}`), [], where);
}

// filled is true once a view has something of the cluster in it.
const filled = {
  overview: ['#members', /alloc-1/], nodes: ['#allocs', /alloc-1/], sections: ['#owners', /alloc-1/], leases: ['#leases', /alloc-/],
  events: ['#events', /\d\d:\d\d/], lookup: ['#view-lookup h1', /Look up/], ids: ['#namespaces', /default/], segments: ['#db', /none/],
};

for (const colorScheme of ['light', 'dark']) {
  test(`every page has data, no error and nothing that axe finds, in ${colorScheme}`, async () => {
    const page = await open(browser, cluster.url, { colorScheme });
    await says(page, '#health', /healthy/i);
    for (const [view, [selector, pattern]] of Object.entries(filled)) {
      await page.click(`nav a[href="#${view}"]`);
      await page.waitForSelector(`nav a[aria-current][href="#${view}"]`); // some views have their text before they are shown
      await says(page, selector, pattern);
      await audit(page, view, colorScheme === 'dark' ? ['color-contrast'] : undefined); // what else there is, light has too
    }
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  });
}

test('a narrow screen scrolls in one direction', async () => {
  const page = await open(browser, cluster.url, { viewport: { width: 390, height: 800 } });
  for (const view of Object.keys(filled)) {
    await page.click(`nav a[href="#${view}"]`);
    await says(page, ...filled[view]);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, `${view} is ${wider} pixels too wide`);
  }
  await page.context().close();
});

test('look-ups tell of a UID and of an ID', async () => {
  const last = await cluster.take(42, 7); // 7, or more if the router had to ask twice
  const page = await open(browser, `${cluster.url}#lookup`);
  await page.fill('#find-uid', '42');
  await page.press('#find-uid', 'Enter');
  await says(page, '#find-out', new RegExp(`Last number${last}.*Watches0.*Owneralloc-`, 's'));
  await page.fill('#decode-id', '108152875544481803');
  await page.fill('#decode-layout', 'regional');
  await page.press('#decode-id', 'Enter');
  await says(page, '#decode-out', /2022-03-22.*Sequence11/s);
  await page.fill('#decode-id', 'x');
  await page.press('#decode-id', 'Enter');
  await says(page, '#decode-out', /Refused/);
  await page.context().close();
});

test('the map of sections is read with the keyboard', async () => {
  const page = await open(browser, `${cluster.url}#sections`);
  await says(page, '#owners', /alloc-1/);
  await page.focus('#map-owner');
  await page.keyboard.press('ArrowRight');
  await says(page, '#cell', /^Section 0: owner alloc-/);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await says(page, '#cell', /^Section 65: owner alloc-/);
  await page.context().close();
});

test('an allocator that is killed is seen to be, and so is its recovery', async () => {
  const page = await open(browser, cluster.url);
  await says(page, '#health', /healthy/i);
  process.kill(cluster.pid('alloc-2'), 'SIGKILL');
  await says(page, '#problem', /alloc-2 does not answer|sections have no owner/);
  assert.match(await page.textContent('#todo'), /First: .+/);
  await page.click('nav a[href="#sections"]');
  await page.waitForFunction(() => { // the others have all sections
    const owned = [...document.querySelectorAll('#owners tbody tr')].filter((tr) => tr.cells[0].textContent !== 'alloc-2');
    return owned.reduce((sum, tr) => sum + Number(tr.cells[3].textContent.replace(',', '')), 0) === 4096;
  });
  await page.click('nav a[href="#events"]');
  await says(page, '#events', /alloc-2/);
  await cluster.revive();
  await says(page, '#health', /healthy/i);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('behind a proxy it works below any prefix', async () => {
  const seen = [];
  const proxy = http.createServer((request, reply) => {
    seen.push(request.url);
    if (!request.url.startsWith('/ops/seq/')) return reply.writeHead(404).end();
    const to = http.request(new URL(request.url.slice('/ops/seq/'.length), cluster.url), { headers: { ...request.headers, host: new URL(cluster.url).host } }, (from) => {
      reply.writeHead(from.statusCode, from.headers);
      from.pipe(reply);
    });
    to.on('error', () => reply.destroy());
    reply.on('close', () => to.destroy());
    to.end();
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  const page = await open(browser, `http://127.0.0.1:${proxy.address().port}/ops/seq/`);
  for (const [view, [selector, pattern]] of Object.entries(filled)) {
    await page.click(`nav a[href="#${view}"]`);
    await says(page, selector, pattern);
  }
  assert.deepEqual(page.wrong, []);
  assert.deepEqual(seen.filter((url) => !url.startsWith('/ops/seq/')), []);
  assert.ok(seen.some((url) => url.startsWith('/ops/seq/api/stream')));
  await page.context().close();
  proxy.closeAllConnections();
  proxy.close();
});

// streams counts those of a page that are open.
function streams(page) {
  const open = new Set();
  const is = (request) => request.url().includes('/api/stream');
  page.on('request', (request) => is(request) && open.add(request));
  for (const end of ['requestfailed', 'requestfinished']) page.on(end, (request) => open.delete(request));
  return open;
}

// hide makes a tab think that it is hidden, or seen again.
const hide = (page, hidden) => page.evaluate((value) => {
  Object.defineProperty(document, 'hidden', { value, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden);

test('two tabs have a stream each while they are seen', async () => {
  const context = await browser.newContext();
  const one = await tab(context, 'about:blank'), two = await tab(context, 'about:blank');
  const open = [streams(one), streams(two)];
  for (const page of [one, two]) {
    await page.goto(cluster.url);
    await says(page, '#health', /healthy/i);
  }
  await one.click('nav a[href="#leases"]');
  await says(one, '#leases', /alloc-/);
  await until('each has one stream', () => open[0].size === 1 && open[1].size === 1);
  await hide(one, true);
  await until('the hidden one has none', () => open[0].size === 0);
  await says(one, '#age', /stale/);
  assert.equal(open[0].size, 0);
  await says(two, '#age', /^\d\.\d s old$/);
  await until('the other has its own', () => open[1].size === 1);
  await hide(one, false);
  await says(one, '#age', /^\d\.\d s old$/);
  await until('it has one again', () => open[0].size === 1);
  await context.close();
});

test('where a stream does not come through it polls', async () => {
  const context = await browser.newContext();
  const page = await tab(context, 'about:blank');
  await page.route('**/api/stream*', (route) => route.abort());
  await page.goto(cluster.url);
  await says(page, '#health', /healthy/i);
  const first = await page.textContent('#seconds tbody tr');
  await until('later data comes', async () => (await page.textContent('#seconds tbody tr')) !== first);
  await context.close();
});

test('data that no longer comes is called stale, until it comes again', async () => {
  const page = await open(browser, cluster.url);
  await says(page, '#age', /^\d\.\d s old$/);
  process.kill(cluster.pid('router-1'), 'SIGSTOP');
  try {
    await says(page, '#age', /stale: \d+ s old/);
  } finally {
    process.kill(cluster.pid('router-1'), 'SIGCONT');
  }
  await says(page, '#age', /^\d\.\d s old$/);
  await page.context().close();
});

test('with tokens, a reader signs in and nobody else sees anything', async () => {
  const tokens = { reader: `seqtok_${randomBytes(32).toString('base64url')}`, caller: `seqtok_${randomBytes(32).toString('base64url')}` };
  const policy = join(cluster.dir, 'policy.yaml');
  writeFileSync(policy, 'principals:\n' + Object.entries(tokens).map(([role, token]) => (
    `  - {name: ${role}-1, role: ${role}, tokens: ["${createHash('sha256').update(token).digest('hex')}"]}\n`)).join(''), { mode: 0o600 });
  const id = JSON.parse(readFileSync(join(cluster.dir, 'data', 'cluster.json'))).cluster_id;
  const router = run('router', '--name', 'router-9', '--listen', '127.0.0.1:0', '--http', '', '--admin', '', '--console', '127.0.0.1:0',
    '--allocs', cluster.allocs.join(','), '--cluster', id, '--auth', 'require', '--policy', policy);
  try {
    const [, addr] = await until('the router says where its console is', () => router.code !== null ? ['', ''] : /console=(\S+)/.exec(router.output), () => router.output);
    assert.equal(router.code, null, router.output);
    const page = await open(browser, `http://${addr}/`);
    await page.waitForSelector('#login:not([hidden])');
    await audit(page, 'login');
    for (const [token, why] of [['seqtok_wrong', /malformed token/], [tokens.caller, /expected role/]]) {
      await page.fill('#token', token);
      await page.press('#token', 'Enter');
      await says(page, '#refused', why);
      assert.equal(await page.isVisible('#members'), false);
    }
    await page.fill('#token', tokens.reader);
    await page.press('#token', 'Enter');
    await says(page, '#members', /alloc-1/);
    await page.reload();
    await says(page, '#members', /alloc-1/);
    await page.context().close();
  } finally {
    await router.end();
  }
});

test('a drill is seen as it runs, and its verdict', async () => {
  const drill = run('seqctl', 'drill', 'restart-alloc', '--web', '127.0.0.1:0', '--lease', '2s', '--rate', '200', '--bin', join(import.meta.dirname, '../../bin'));
  try {
    const [, url] = await until('the drill says where to look', () => drill.code !== null ? ['', ''] : /look: (\S+)/.exec(drill.output), () => drill.output);
    assert.equal(drill.code, null, drill.output);
    const page = await open(browser, url);
    await says(page, '#drill-name', /restart-alloc/);
    await says(page, '#drill-verdict', /verdict comes at the end|No number twice/);
    await says(page, '#drill-verdict', /No number twice, none lower than one before/);
    await says(page, '#timeline', /fault/);
    await audit(page, 'drill');
    assert.deepEqual(page.wrong, []);
    await page.context().close();
  } finally {
    await drill.end();
  }
  assert.equal(drill.code, 0, drill.output);
});

// size is what a page weighs after its garbage has gone.
async function size(cdp) {
  await cdp.send('HeapProfiler.collectGarbage');
  const { metrics } = await cdp.send('Performance.getMetrics');
  const of = (name) => metrics.find((m) => m.name === name).value;
  return { heap: of('JSHeapUsedSize'), nodes: of('Nodes'), listeners: of('JSEventListeners') };
}

test(`a page that stays open for ${GROWTH} s does not grow`, async () => {
  const page = await open(browser, cluster.url);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const round = async () => {
    for (const [view, [selector, pattern]] of Object.entries(filled)) {
      await page.click(`nav a[href="#${view}"]`);
      await says(page, selector, pattern);
    }
  };
  await round();
  await round();
  const before = await size(cdp);
  for (const end = Date.now() + GROWTH * 1000; Date.now() < end;) {
    await round();
    await page.click('nav a[href="#overview"]');
    await page.waitForTimeout(2000);
  }
  await round();
  const now = await size(cdp);
  console.log(`# before ${JSON.stringify(before)}, after ${GROWTH} s ${JSON.stringify(now)}`);
  assert.ok(now.heap < before.heap * 1.2 + 1e6, `heap from ${before.heap} to ${now.heap} bytes`);
  assert.ok(now.nodes < before.nodes * 1.1 + 300, `from ${before.nodes} to ${now.nodes} nodes`);
  assert.ok(now.listeners <= before.listeners + 10, `from ${before.listeners} to ${now.listeners} listeners`);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
