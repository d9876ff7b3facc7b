// What was decided, by whom and why.

import { $, rows } from './dom.js';
import { at } from './format.js';

let found = [];

function paint() {
  const word = $('event-text').value.trim().toLowerCase();
  const match = (e) => [e.set ?? '', e.node, e.kind, e.subject, e.reason].some((field) => field.toLowerCase().includes(word));
  rows($('events'), found.filter(match).reverse().map((e) => [at(e.unix_ms), e.set ?? '', e.node, e.kind, e.subject, e.reason]));
}

$('event-filter').addEventListener('submit', (event) => event.preventDefault());
$('event-text').addEventListener('input', paint);

export default {
  needs: ['events'],

  show(snapshot) {
    found = snapshot.events;
    paint();
  },
};
