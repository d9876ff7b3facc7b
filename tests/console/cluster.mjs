// Real clusters, a browser, and pages that keep what went wrong in them.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

export const bin = resolve(import.meta.dirname, '../../bin');
export const patience = 90_000; // ms that anything may take on a busy machine

const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SEQ_')));

// run starts a program of bin/; end() asks it to end, and waits.
export function run(name, ...args) {
  const child = spawn(join(bin, name), args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const run = { child, output: '', code: null };
  child.stdout.on('data', (text) => { run.output += text; });
  child.stderr.on('data', (text) => { run.output += text; });
  const gone = new Promise((done) => child.on('exit', (code) => { run.code = code ?? -1; done(); }));
  run.end = async () => {
    if (run.code === null) child.kill('SIGINT');
    const timer = setTimeout(() => child.kill('SIGKILL'), patience);
    await gone;
    clearTimeout(timer);
    return run.code;
  };
  return run;
}

// until waits for a condition; what it gives that is true.
export async function until(what, ok, shown = () => '') {
  for (const end = Date.now() + patience; ;) {
    const got = await ok();
    if (got) return got;
    if (Date.now() > end) throw new Error(`${what}: not within ${patience / 1000} s\n${shown()}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

// done waits until a program has ended by itself.
const done = (run) => until('it ends', () => run.code !== null, () => run.output);

// cluster starts seqctl dev with processes.
export async function cluster() {
  const dir = mkdtempSync(join(tmpdir(), 'console-'));
  const file = join(dir, 'ready.json');
  const dev = run('seqctl', 'dev', '--processes', '--data-dir', join(dir, 'data'), '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0', '--lease', '2s', '--ready-file', file);
  const end = async () => {
    await dev.end();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await until('the cluster serves', () => existsSync(file) || (dev.code !== null && 'ended'), () => dev.output);
    if (dev.code !== null) throw new Error(`dev ended: ${dev.output}`);
  } catch (err) {
    await end();
    throw err;
  }
  const ready = () => JSON.parse(readFileSync(file));
  // healthy waits until the cluster is; one on a busy machine may think that it lost nodes, and
  // then moves nothing until it is told to.
  const healthy = () => until('the cluster is healthy', async () => {
    const status = run('seqctl', 'status', '--addr', ready().grpc, '-o', 'json');
    await done(status);
    if (/"frozen": "[^"]/.test(status.output)) await done(run('seqctl', 'rebalance', '--addr', ready().grpc));
    return /"health": "healthy"/.test(status.output);
  }, () => dev.output);
  try {
    await healthy();
  } catch (err) {
    await end();
    throw err;
  }
  return {
    dir, end, url: `http://${ready().console}/`, http: `http://${ready().http}`, addr: ready().grpc,
    allocs: ready().processes.filter((p) => p.role === 'alloc').map((p) => p.addr),
    pid: (name) => ready().processes.find((p) => p.name === name).pid,
    // revive starts what was killed, and waits until all is well.
    async revive() {
      dev.child.kill('SIGHUP');
      await healthy();
    },
    // take gives the last number that was taken.
    async take(uid, count) {
      const reply = await fetch(`http://${ready().http}/v1/next`, {
        method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ uid, count }) });
      if (!reply.ok) throw new Error(`take: ${reply.status} ${await reply.text()}`);
      return (await reply.json()).last;
    },
  };
}

export const browser = () => chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--js-flags=--expose-gc'] });

// open gives a page, whose errors are in page.wrong: of scripts, of the policy, of requests.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  return tab(context, url);
}

export async function tab(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  page.wrong = [];
  page.on('pageerror', (err) => page.wrong.push(err.stack ?? err.message));
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) page.wrong.push(message.text()); });
  await page.goto(url);
  return page;
}

// says waits until an element's text matches.
export async function says(page, selector, pattern) {
  let got = '';
  await until(`${selector} says ${pattern}`, async () => pattern.test(got = await page.textContent(selector)), () => got);
}
