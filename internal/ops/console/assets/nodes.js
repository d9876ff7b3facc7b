// Every node with what it says of itself.

import { $, rows } from './dom.js';
import { bytes, count, left, short } from './format.js';

const states = { ready: 'good', draining: 'warn', drained: 'warn', 'not ready': 'bad', 'no answer': 'bad', voting: 'good', alive: 'good', dead: 'bad', left: 'warn' };

export default {
  needs: ['status'],

  show({ status: { status } }) {
    rows($('allocs'), status.allocs.map((a) => [
      a.name, a.set ?? '', a.zone, { text: a.reason && a.state === 'not ready' ? `${a.state}: ${a.reason}` : a.state, kind: states[a.state] }, { text: a.addr, kind: 'm' },
      short(a.sections_owned), short(a.counters), a.uid_memory_budget ? `${bytes(a.uid_memory_bytes)} of ${bytes(a.uid_memory_budget)}` : bytes(a.uid_memory_bytes),
      short(a.numbers), short(a.steps), short(a.takeovers), short(a.handoffs), short(a.tickets_open), short(a.watches), short(a.watched_keys), { text: a.session, kind: 'm' }, a.version,
    ]));
    rows($('stores'), status.stores.map((s) => [
      s.name || '–', s.set ?? '', s.zone, s.nearly_full ? { text: 'nearly full', kind: 'bad' } : { text: s.state, kind: states[s.state] ?? 'bad' }, { text: s.addr, kind: 'm' },
      short(s.commits), count(s.boot_count), left(s.grace_left_ms || -1), s.disk_free_bytes ? bytes(s.disk_free_bytes) : '–', { text: s.uuid, kind: 'm' },
    ]));
    rows($('routers'), status.routers.map((r) => [r.name, r.zone, { text: r.state, kind: states[r.state] }, { text: r.addr, kind: 'm' }]), 'the membership knows of none');
  },
};
