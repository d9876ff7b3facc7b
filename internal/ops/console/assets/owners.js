// A colour for each owner. They are those of Okabe and Ito, which people with every kind of
// colour blindness tell apart; from the ninth owner on they come again, darker. Names stand beside
// them wherever they are used.

const base = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#8c8c8c'];
const known = new Map(); // name -> place: a node keeps its colour while others come and go

// key tells nodes of the same name in two Sets apart; place is a place in a snapshot's list of nodes.
export const key = (found, place) => `${found.node_sets[place]}/${found.nodes[place]}`;

// colour of the owner of this name.
export function colour(name) {
  if (!known.has(name)) known.set(name, known.size);
  const place = known.get(name);
  const round = Math.floor(place / base.length);
  const hex = base[place % base.length];
  if (round === 0) return hex;
  const dim = Math.max(1 - 0.28 * round, 0.2);
  const part = (from) => Math.round(parseInt(hex.slice(from, from + 2), 16) * dim);
  return `rgb(${part(1)}, ${part(3)}, ${part(5)})`;
}
