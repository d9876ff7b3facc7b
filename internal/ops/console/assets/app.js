// The page as a whole: which view is in front, the first line, the age of the data.

import { $, text } from './dom.js';
import { Feed } from './feed.js';
import overview from './overview.js';
import nodes from './nodes.js';
import sections from './sections.js';
import leases from './leases.js';
import events from './events.js';
import lookup from './lookup.js';
import ids from './ids.js';
import segments from './segments.js';
import drill from './drill.js';

const views = { overview, nodes, sections, leases, events, lookup, ids, segments, drill };
const STALE = 3000; // ms

let front = null; // the view that is shown
let last = null; // the last snapshot
let taken = 0; // when its data was collected, on this page's clock

const feed = new Feed(take, refused);

function take(snapshot) {
  last = snapshot;
  taken = performance.now() - snapshot.age_ms;
  $('login').hidden = true;
  verdict(snapshot.status);
  show();
}

// show gives the last snapshot to the view in front, as far as it has what that needs.
function show() {
  if (last && front && front.needs.every((topic) => topic in last)) {
    const failed = front.needs.map((topic) => last[topic]?.error).find(Boolean);
    if (failed) front.failed?.(failed);
    else front.show(last);
  }
  age();
}

// verdict is the first line of seqctl status, and what to do.
function verdict(found) {
  const status = found.status;
  const health = status?.health ?? 'failed';
  $('verdict').dataset.health = health;
  text($('health'), health);
  text($('problem'), status ? status.problems[0] ?? 'every part serves' : `nothing is known: ${found.error}`);
  $('todo').hidden = !status?.first;
  text($('first'), status?.first ?? '');
  text($('why'), status?.why ?? '');
  if (!status) return;
  document.body.classList.toggle('sets', status.sets.length > 0);
  document.body.classList.toggle('zones', [...status.allocs, ...status.stores, ...status.routers].some((node) => node.zone));
  text($('cluster'), `Cluster ${status.cluster_id}, era ${status.era}, ${status.sections} sections, routes version ${status.route_version}, lease ${status.lease_ms} ms, arbiter ${status.arbiter || '–'}.`);
}

// age tells how old the data is, and that it is stale.
function age() {
  if (!last) return;
  const old = performance.now() - taken;
  const stale = old > STALE;
  document.body.classList.toggle('stale', stale);
  text($('age'), stale ? `stale: ${Math.round(old / 1000)} s old` : `${(old / 1000).toFixed(1)} s old`);
}

function refused(why) {
  const tried = sessionStorage.getItem('token');
  sessionStorage.removeItem('token');
  text($('refused'), tried ? why : '');
  $('login').hidden = false;
  for (const name of Object.keys(views)) hide(name);
  text($('health'), 'sign in');
  text($('problem'), 'to see how the cluster is');
  $('token').focus();
}

function hide(name) {
  const section = $(`view-${name}`);
  if (section) section.hidden = true;
}

function route() {
  const wanted = location.hash.slice(1);
  const name = views[wanted] && $(`view-${wanted}`) ? wanted : document.body.dataset.first;
  for (const other of Object.keys(views)) if (other !== name) hide(other);
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  front = views[name];
  $('login').hidden = true;
  $(`view-${name}`).hidden = false;
  document.title = `${$(`view-${name}`).querySelector('h1').textContent} · seqsvr`;
  feed.want(['status', ...front.needs.filter((topic) => topic !== 'status')].join(','));
  show();
}

$('login').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', $('token').value.trim());
  $('token').value = '';
  route();
  feed.again();
});

$('skip').addEventListener('click', () => $('main').focus());

const theme = $('theme');
theme.value = localStorage.getItem('theme') ?? '';
function paint() {
  document.documentElement.dataset.theme = theme.value;
  for (const view of Object.values(views)) view.restyle?.();
}
theme.addEventListener('change', () => {
  localStorage.setItem('theme', theme.value);
  paint();
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
paint();

addEventListener('hashchange', route);
setInterval(age, 250);
route();
