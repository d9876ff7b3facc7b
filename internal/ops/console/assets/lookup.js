// Two questions about one number each. They go to the server once, when asked.

import { $, list } from './dom.js';
import { ask } from './feed.js';
import { at, count, ms } from './format.js';

// question answers a form: query gives what to ask, pairs what to show.
function question(form, out, path, query, pairs) {
  $(form).addEventListener('submit', async (event) => {
    event.preventDefault();
    try {
      const reply = await ask(path, query());
      list($(out), pairs(await reply.json()));
    } catch (err) {
      list($(out), [['Refused', err.message]]);
    }
  });
}

const value = (id) => $(id).value.trim();

// readers is what the owner keeps for the readers of a UID or key.
const readers = (k, why) => (why ? [['Readers', `not known: ${why}`]] : !k ? [] : [
  ...(k.has_tickets ? [
    ['Mark', k.known_in_ms ? `known in ${ms(k.known_in_ms)}` : count(k.mark)], ...(k.known_in_ms ? [] : [['Fence', count(k.fence)]]),
    ['Open tickets', k.tickets_open ? `${count(k.tickets_open)}, the oldest ends in ${ms(k.ends_in_ms)}` : '0'],
  ] : []),
  ['Watches', count(k.watches)],
]);

question('find', 'find-out', 'api/uid', () => ({ uid: value('find-uid'), key: value('find-key'), space: value('find-space') }), (r) => [
  ['Space', r.space], r.key ? ['Key', r.key] : ['UID', r.uid],
  r.error ? ['Last number', `not known: ${r.error}`] : [r.exact ? 'Last number' : 'At most', count(r.current)],
  ...readers(r.readers, r.readers_error),
  ...(r.last_taken_unix ? [['Last taken', at(r.last_taken_unix * 1000)]] : []),
  ['Section', String(r.section)], ...(r.set ? [['Set', r.set]] : []), ['Owner', r.owner ? `${r.owner} at ${r.addr}${r.zone ? `, zone ${r.zone}` : ''}` : 'none'], ['Standbys', r.standbys.join(', ') || 'none'],
  ['Pinned', r.pinned ? 'yes' : 'no'],
]);

question('decode', 'decode-out', 'api/id', () => ({
  id: value('decode-id'), namespace: value('decode-layout') ? '' : value('decode-namespace'), layout: value('decode-layout'), encoding: value('decode-encoding'),
}), (r) => [
  ['ID', r.id], ['Time', new Date(r.unix_ms).toISOString()],
  ...(r.has_datacenter ? [['Datacenter', r.datacenter ? `${r.datacenter_id} (${r.datacenter})` : r.datacenter_id]] : []),
  ...(r.text_alone ? [['Made by', r.origin || 'it does not say']] : [['Worker', r.worker_id], ['Ticks', r.tick]]),
  ['Sequence', r.sequence], ['Layout', r.layout],
]);

export default { needs: ['status'], show() {} };
