// How the cluster is: rates, what is wrong, who is there.

import { $, items, list, rows, text } from './dom.js';
import { Chart } from './charts.js';
import { at, count, left, ms, rate, seconds, short } from './format.js';

const kinds = { healthy: 'good', degraded: 'warn', failed: 'bad' };
const SHOWN = 14; // seconds in the table
let charts = null;

// known is a value, or nothing for one that is not known.
const known = (n) => (n < 0 ? null : n);

export default {
  needs: ['status'],

  show({ status: { status, members, traffic, calls_of: callers } }) {
    const now = traffic.at(-1);
    list($('tiles'), [
      ['Numbers a second', rate(now.numbers_per_s)],
      ...(callers.length ? [['Calls a second', rate(now.calls_per_s)], ['p50', ms(now.p50_ms)], ['p99', ms(now.p99_ms)], ['Errors a second', rate(now.errors_per_s)]] : []),
      ['Sections unowned', count(status.sections_unowned)],
    ], true);
    const x = traffic.map((t) => t.unix_ms / 1000);
    charts ??= {
      numbers: new Chart($('chart-numbers'), 'rate', [{ label: 'numbers/s', colour: '--accent' }]),
      calls: new Chart($('chart-calls'), 'ms', [{ label: 'p50', colour: '--accent' }, { label: 'p99', colour: '--warn', dash: [6, 4] }]),
    };
    charts.numbers.show([x, traffic.map((t) => known(t.numbers_per_s))]);
    const timed = traffic.some((t) => t.p50_ms >= 0);
    $('no-calls').hidden = timed || !callers.length;
    text($('callers'), callers.length ? `Calls, errors, p50 and p99 are those of ${callers.join(', ')}.` : '');
    $('chart-calls').hidden = !timed;
    if (timed) charts.calls.show([x, traffic.map((t) => known(t.p50_ms)), traffic.map((t) => known(t.p99_ms))]);
    rows($('seconds'), traffic.slice(-SHOWN).reverse().map((t) => (
      [seconds(t.unix_ms), rate(t.numbers_per_s), rate(t.calls_per_s), rate(t.errors_per_s), ms(t.p50_ms), ms(t.p99_ms)])));
    items($('problems'), [...status.problems, ...status.notes].length ? [...status.problems, ...status.notes] : ['Nothing is wrong.']);
    rows($('sets'), status.sets.map((s) => [s.name, count(s.sections), count(s.sections_unowned), { text: s.health, kind: kinds[s.health] }, s.problem, { text: s.cluster_id, kind: 'm' }]), 'the cluster is alone');
    rows($('readers'), status.reading.map((r) => [
      r.space, count(r.tickets_open), r.tickets_open ? ms(r.oldest_ticket_ms) : '', rate(r.tickets_expired_per_s), count(r.watched_keys),
    ]), 'no space has tickets or watches');
    rows($('members'), members.map((m) => [
      m.name, m.set ?? '', m.zone, m.role, { text: m.drained ? `${m.state}, drained` : m.state, kind: m.state === 'alive' ? (m.drained ? 'warn' : 'good') : m.state === 'dead' ? 'bad' : 'warn' },
      at(m.since_unix_ms), { text: m.addr, kind: 'm' },
      ...(m.role === 'alloc' ? [short(m.sections_desired), short(m.sections_owned), left(m.lease_left_ms)] : ['', '', '']),
    ]));
  },

  restyle() {
    for (const chart of Object.values(charts ?? {})) chart.restyle();
  },
};
