// Line charts over time. Each has a table of the same beside it.

import uPlot from './uPlot.esm.js';
import { rate, ms, seconds } from './format.js';

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Chart is one chart in a box. lines have {label, colour, dash}; unit is rate or ms.
export class Chart {
  #box; #lines; #unit; #options; #plot = null; #data = null;
  #resized = new ResizeObserver(() => this.#plot?.setSize(this.#size()));

  constructor(box, unit, lines, options = {}) {
    this.#box = box;
    this.#unit = unit === 'ms' ? ms : rate;
    this.#lines = lines;
    this.#options = options;
    this.#resized.observe(box);
  }

  #size() { return { width: Math.max(this.#box.clientWidth, 240), height: 190 }; }

  // show draws columns: the x values, then one column a line; null for no value.
  show(data) {
    this.#data = data;
    if (this.#plot) this.#plot.setData(data);
    else this.#make();
  }

  // restyle draws anew, in the colours of now.
  restyle() {
    if (!this.#plot) return;
    this.#plot.destroy();
    this.#make();
  }

  #make() {
    const ink = variable('--soft'), line = variable('--line');
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const value = (u, v) => (v == null ? '–' : this.#unit(v));
    this.#plot = new uPlot({
      ...this.#size(),
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: this.#options.time ?? true }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, values: (u, list) => list.map(this.#options.x ?? ((s) => seconds(s * 1000))), space: 80 },
        { ...axis, size: 64, values: (u, list) => list.map((v) => this.#unit(v)) }],
      series: [{ label: 'Time' }, ...this.#lines.map(({ label, colour, dash }) => (
        { label, stroke: variable(colour), dash, width: 1.75, points: { show: false }, value }))],
      plugins: this.#options.mark ? [marker(this.#options.mark, () => variable('--bad'))] : [],
    }, this.#data, this.#box);
  }
}

// marker draws a line at the x value that at() gives, if it gives one.
function marker(at, colour) {
  return { hooks: { draw: (u) => {
    const value = at();
    if (value == null) return;
    const x = u.valToPos(value, 'x', true);
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour();
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  } } };
}
