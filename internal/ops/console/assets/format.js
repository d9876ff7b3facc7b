// Numbers, times and sizes as people read them.

const whole = new Intl.NumberFormat('en');
const day = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

export const count = (n) => whole.format(n);

// short is a count in at most seven characters.
export function short(n) {
  if (n < 1e6) return whole.format(Math.round(n));
  for (const unit of ['M', 'G', 'T', 'P']) {
    n /= unit === 'M' ? 1e6 : 1000;
    if (n < 1000 || unit === 'P') return n.toFixed(2) + unit;
  }
}

// rate is short, with a digit behind the point where it is small; nothing if it is not known.
export const rate = (n) => (n < 0 ? '–' : n > 0 && n < 10 ? n.toFixed(1) : short(n));

export function ms(n) {
  if (n < 0) return '–';
  if (n < 10) return n.toFixed(2) + ' ms';
  if (n < 1000) return n.toFixed(0) + ' ms';
  return (n / 1000).toFixed(2) + ' s';
}

export const left = (n) => (n > 0 ? ms(n) : n === 0 ? '0 ms' : '–');

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return (n >= 10 || unit === 0 ? n.toFixed(0) : n.toFixed(1)) + ' ' + units[unit];
}

export const at = (unixMS) => (unixMS ? `${day.format(unixMS)} ${clock.format(unixMS)}` : '');
export const seconds = (unixMS) => clock.format(unixMS);
