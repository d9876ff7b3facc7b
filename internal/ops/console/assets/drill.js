// A drill as it runs, and what it came to.

import { $, items, list, rows, text } from './dom.js';
import { Chart } from './charts.js';
import { count, ms, rate } from './format.js';

const phases = {
  starting: 'The cluster starts.', load: 'Callers are at work; nothing is broken yet.', fault: 'It is broken, and mends.',
  settling: 'All serve again; callers go on for a moment.', over: 'It is over.',
};
let charts = null;
let fault = -1; // ms after the load began

export default {
  needs: ['drill'],

  show({ drill: d }) {
    if (!d) return;
    text($('drill-name'), d.name);
    text($('drill-what'), `${d.what}. Expected: ${d.wanted}, no number twice, none lower than one before.`);
    const banner = $('drill-verdict'), v = d.verdict;
    banner.className = `banner ${v ? (v.kept ? 'good' : 'bad') : ''}`;
    text(banner, v ? v.words : `${phases[d.phase]} The verdict comes at the end.`);
    items($('drill-reasons'), v ? v.reasons : []);
    list($('drill-tiles'), [
      ['Seconds', d.seconds.toFixed(1)], ['Calls', count(v ? v.requests : d.calls)], ['Errors', count(v ? v.errors : d.errors)],
      [v ? 'Longest pause' : 'Longest call', ms(v ? v.max_pause_ms : d.longest_ms)],
      ...(v && v.target_ms ? [['Target', ms(v.target_ms)]] : []),
      ...(v ? [['Duplicates', count(v.duplicates)], ['Regressions', count(v.regressions)], ['Gaps', count(v.gaps)]] : []),
    ], true);
    fault = d.fault_ms;
    const options = { time: false, x: (s) => `${s} s`, mark: () => (fault < 0 ? null : fault / 1000) };
    charts ??= {
      answers: new Chart($('chart-answers'), 'rate', [{ label: 'answers/s', colour: '--accent' }, { label: 'errors/s', colour: '--bad', dash: [6, 4] }], options),
      longest: new Chart($('chart-longest'), 'ms', [{ label: 'longest call', colour: '--warn' }], options),
    };
    const per = 1000 / d.slice_ms;
    const x = d.slices.map((s, i) => (i * d.slice_ms) / 1000);
    if (x.length > 1) {
      charts.answers.show([x, d.slices.map((s) => s.answers * per), d.slices.map((s) => s.errors * per)]);
      charts.longest.show([x, d.slices.map((s) => (s.answers + s.errors ? s.longest_ms : null))]);
    }
    rows($('drill-seconds'), bySecond(d.slices, per).reverse().map((s) => [String(s.second), rate(s.answers), rate(s.errors), ms(s.longest)]));
    rows($('timeline'), d.timeline.map((m) => [m.ms.toFixed(1), m.event, m.subject, m.detail]), 'nothing was broken yet');
  },

  restyle() {
    for (const chart of Object.values(charts ?? {})) chart.restyle();
  },
};

// bySecond adds up the slices of each second.
function bySecond(slices, per) {
  const out = [];
  slices.forEach((s, i) => {
    const second = Math.floor(i / per);
    out[second] ??= { second, answers: 0, errors: 0, longest: -1 };
    out[second].answers += s.answers;
    out[second].errors += s.errors;
    if (s.answers + s.errors) out[second].longest = Math.max(out[second].longest, s.longest_ms);
  });
  return out.slice(-30);
}
