// Who owns each section, beside who should: two maps of the same cells, and the same as tables.

import { $, rows, text } from './dom.js';
import { colour, key } from './owners.js';
import { count, left } from './format.js';

const MOST = 20; // rows of sections that are not where they should be
const maps = { owner: $('map-owner'), desired: $('map-desired') };
let found = null; // the part of the last snapshot
let columns = 64;
let chosen = -1; // section
let drawn = ''; // what the canvases show

const off = (id) => found.owner[id] !== found.desired[id];
const name = (place) => (place < 0 ? 'nobody' : found.nodes[place]);

// draw paints a map. Cells that are owned by another than should, and those without a lease,
// are marked by their shape, and not by colour alone.
function draw(canvas, owners, marks) {
  const total = owners.length, lines = Math.ceil(total / columns);
  const scale = devicePixelRatio || 1;
  const cell = Math.max(Math.floor((canvas.clientWidth * scale) / columns), 2);
  canvas.width = cell * columns;
  canvas.height = cell * lines;
  const pen = canvas.getContext('2d');
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue('--ink').trim(), ground = style.getPropertyValue('--ground').trim();
  const gap = cell > 5 ? 1 : 0;
  const colours = found.nodes.map((_, place) => colour(key(found, place)));
  for (let id = 0; id < total; id++) {
    const x = (id % columns) * cell, y = Math.floor(id / columns) * cell;
    pen.fillStyle = owners[id] < 0 ? ground : colours[owners[id]];
    pen.fillRect(x, y, cell - gap, cell - gap);
    if (marks && found.left_ms[id] < 0) cross(pen, x, y, cell - gap, ink);
    if (off(id)) frame(pen, x, y, cell - gap, ink, 1);
    if (id === chosen) frame(pen, x - 1, y - 1, cell + 2 - gap, ink, Math.max(cell / 4, 2));
  }
}

function frame(pen, x, y, size, ink, width) {
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
}

function cross(pen, x, y, size, ink) {
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + size, y + size);
  pen.moveTo(x + size, y);
  pen.lineTo(x, y + size);
  pen.stroke();
}

function paint() {
  if (!found?.owner) return;
  columns = Math.max(Math.ceil(Math.sqrt(found.owner.length)), 1);
  const state = [maps.owner.clientWidth, document.documentElement.dataset.theme, matchMedia('(prefers-color-scheme: dark)').matches,
    chosen, found.owner, found.desired, found.left_ms.map((l) => (l < 0 ? 1 : 0)).join('')].join('|');
  if (state === drawn) return; // as it stands there
  drawn = state;
  draw(maps.owner, found.owner, true);
  draw(maps.desired, found.desired, false);
}

function choose(id) {
  chosen = Math.min(Math.max(id, 0), found.owner.length - 1);
  const owner = `owner ${name(found.owner[chosen])}`;
  const lease = found.left_ms[chosen] < 0 ? 'no valid lease' : `lease ${left(found.left_ms[chosen])} left`;
  const set = found.sets[found.set[chosen]];
  text($('cell'), `Section ${chosen}${set ? ` of Set ${set}` : ''}: ${owner}, desired ${name(found.desired[chosen])}, ${lease}, max ${count(found.max[chosen])}.`);
  paint();
}

for (const canvas of Object.values(maps)) {
  canvas.addEventListener('pointermove', (event) => {
    if (!found?.owner) return;
    const box = canvas.getBoundingClientRect(), size = box.width / columns;
    const id = Math.floor((event.clientY - box.top) / size) * columns + Math.min(Math.floor((event.clientX - box.left) / size), columns - 1);
    if (id !== chosen && id >= 0 && id < found.owner.length) choose(id);
  });
  canvas.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (!by || !found?.owner) return;
    event.preventDefault();
    choose(chosen < 0 ? 0 : chosen + by);
  });
}
addEventListener('resize', paint);

export default {
  needs: ['sections'],

  show(snapshot) {
    found = snapshot.sections;
    if (!found.owner) return this.failed('no section is known');
    const tally = found.nodes.map((node, place) => ({ node, place, owned: 0, desired: 0, give: 0, get: 0 }));
    const apart = [];
    found.owner.forEach((owner, id) => {
      const desired = found.desired[id];
      if (owner >= 0 && found.left_ms[id] >= 0) tally[owner].owned++;
      if (desired >= 0) tally[desired].desired++;
      if (owner === desired && found.left_ms[id] >= 0) return;
      apart.push(id);
      if (owner >= 0 && owner !== desired) tally[owner].give++;
      if (desired >= 0) tally[desired].get++;
    });
    rows($('owners'), tally.map((t) => [{ text: t.node, swatch: colour(key(found, t.place)) }, found.node_sets[t.place], found.node_zones[t.place], count(t.owned), count(t.desired), count(t.give), count(t.get)]));
    rows($('apart'), apart.slice(0, MOST).map((id) => [count(id), found.sets[found.set[id]] ?? '', name(found.owner[id]), name(found.desired[id]), left(found.left_ms[id])]), 'all are where they should be');
    text($('apart').caption, apart.length > MOST ? `Not where they should be: ${MOST} of ${count(apart.length)}` : 'Not where they should be');
    if (chosen >= 0) choose(chosen);
    paint();
  },

  failed(why) { text($('cell'), `Not known: ${why}`); },

  restyle: paint,
};
