// Namespaces of global IDs, and who holds their worker ids.

import { $, rows, text } from './dom.js';
import { at, count, left } from './format.js';

export default {
  needs: ['ids'],

  show({ ids }) {
    text($('ids-error'), '');
    rows($('namespaces'), ids.namespaces.map((n) => [
      n.name, n.alias ? String(n.alias) : '', n.layout, at(n.ends_unix_ms), n.used ? count(n.held) : '', n.used ? n.pool : '',
      n.error ? { text: n.error, kind: 'bad' } : n.retired_unix_ms ? { text: `retired ${at(n.retired_unix_ms)}`, kind: 'warn' } : n.used ? { text: 'in use', kind: 'good' } : 'never used',
    ]));
    rows($('workers'), ids.namespaces.flatMap((n) => n.workers.map((w) => [
      n.name, ids.datacenters[w.datacenter] ? `${w.datacenter} (${ids.datacenters[w.datacenter]})` : String(w.datacenter), String(w.worker),
      w.free ? { text: 'free', kind: 'empty' } : w.node || w.session || 'delegated', left(w.lease_left_ms), at(w.mark_unix_ms),
    ])), 'none so far');
    const out = ids.namespaces.reduce((sum, n) => sum + n.left_out, 0);
    text($('workers').caption, out ? `Worker ids ever used, without ${count(out)} more: seqctl snowflake workers` : 'Worker ids ever used');
    text($('namespaces').caption, ids.left_out ? `Namespaces, without ${count(ids.left_out)} more: seqctl namespace list` : 'Namespaces');
  },

  failed(why) { text($('ids-error'), `Not known: ${why}`); },
};
