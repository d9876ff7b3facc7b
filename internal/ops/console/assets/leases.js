// Every section with its lease, fifty at a time.

import { $, rows, text } from './dom.js';
import { count, left } from './format.js';
import { key } from './owners.js';

const PAGE = 50;
let found = null;
let page = 0;

function matching() {
  const section = $('lease-section').value.trim(), node = $('lease-node').value, off = $('lease-off').checked;
  const ids = [];
  for (let id = 0; id < found.owner.length; id++) {
    const well = found.left_ms[id] >= 0 && found.owner[id] === found.desired[id];
    if ((section === '' || String(id) === section) && (node === '' || key(found, found.owner[id]) === node) && !(off && well)) ids.push(id);
  }
  return ids;
}

function paint() {
  if (!found?.owner) return;
  const ids = matching(), name = (place) => found.nodes[place] ?? '–';
  page = Math.min(page, Math.max(Math.ceil(ids.length / PAGE) - 1, 0));
  const from = page * PAGE;
  rows($('leases'), ids.slice(from, from + PAGE).map((id) => [
    String(id), found.sets[found.set[id]] ?? '', { text: name(found.owner[id]), kind: found.left_ms[id] >= 0 && found.owner[id] === found.desired[id] ? '' : 'warn' },
    { text: found.sessions[found.session[id]] ?? '', kind: 'm' }, count(found.round[id]), count(found.max[id]),
    found.left_ms[id] < 0 ? { text: 'none', kind: 'bad' } : left(found.left_ms[id]), name(found.desired[id]),
    [found.standby[id], found.standby2[id]].filter((place) => place >= 0).map(name).join(', '),
  ]));
  text($('lease-at'), ids.length ? `${count(from + 1)} to ${count(Math.min(from + PAGE, ids.length))} of ${count(ids.length)}` : 'none');
  $('lease-back').disabled = page === 0;
  $('lease-on').disabled = from + PAGE >= ids.length;
}

function turn(by) {
  page += by;
  paint();
}

$('lease-filter').addEventListener('submit', (event) => event.preventDefault());
$('lease-filter').addEventListener('input', () => { page = 0; paint(); });
$('lease-back').addEventListener('click', () => turn(-1));
$('lease-on').addEventListener('click', () => turn(1));

export default {
  needs: ['sections'],

  show(snapshot) {
    found = snapshot.sections;
    const select = $('lease-node'), had = select.value;
    const names = ['', ...found.nodes.map((_, place) => key(found, place))];
    if ([...select.options].map((o) => o.value).join() !== names.join()) {
      select.replaceChildren(...names.map((n) => new Option(n.replace(/^\//, '') || 'any', n)));
      select.value = names.includes(had) ? had : '';
    }
    paint();
  },

  failed(why) { text($('lease-at'), `not known: ${why}`); },
};
