// Segment tags, as Leaf's two pages have them.

import { $, rows, text } from './dom.js';
import { at, count } from './format.js';

export default {
  needs: ['segments'],

  show({ segments: { tags, left_out: out } }) {
    text($('segments-error'), '');
    rows($('cache'), tags.filter((t) => t.state).map((t) => [
      t.tag, t.node, { text: t.leased ? t.state : `${t.state}, no lease`, kind: t.leased ? 'good' : 'warn' }, count(t.current), count(t.max), count(t.step),
      t.buffers.map((b) => `${count(b.left)} of ${count(b.first)}–${count(b.last)}`).join(' · ') + (t.loading ? ' · loading' : ''),
    ]));
    rows($('db'), tags.map((t) => [
      t.tag, String(t.section), count(t.min_step), count(t.max_step), count(t.start), t.retired_unix_ms ? { text: `retired ${at(t.retired_unix_ms)}`, kind: 'warn' } : { text: 'in use', kind: 'good' },
    ]));
    text($('db').caption, `As recorded, as Leaf's /db has it${out ? `, without ${count(out)} more` : ''}`);
  },

  failed(why) { text($('segments-error'), `Not known: ${why}`); },
};
