// Small helpers. Text goes in as text: nothing here reads HTML.

export const $ = (id) => document.getElementById(id);

// text sets what differs, so that a page that stays the same does no work.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

// rows makes the body of a table be these rows. A row is a list of cells, a cell a text or
// {text, kind, swatch}. Rows and cells that are there are used again: a page that is open for days
// keeps its size.
export function rows(table, list, none = 'none') {
  const body = table.tBodies[0];
  const head = table.tHead.rows[0].cells;
  if (list.length === 0) list = [[{ text: none, kind: 'empty', span: head.length }]];
  while (body.rows.length > list.length) body.deleteRow(-1);
  list.forEach((cells, i) => {
    const row = body.rows[i] ?? body.insertRow();
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((cell, k) => {
      const td = row.cells[k] ?? row.insertCell();
      const { text: value, kind = '', swatch = null, span = 1 } = typeof cell === 'object' && cell !== null ? cell : { text: cell };
      const classes = [head[k].className, kind].filter(Boolean).join(' ');
      if (td.className !== classes) td.className = classes;
      if (td.colSpan !== span) td.colSpan = span;
      if (swatch === null) {
        text(td, String(value));
      } else {
        marked(td, swatch, String(value));
      }
    });
  });
}

// marked is a text behind a square in a colour.
function marked(td, colour, value) {
  let square = td.firstElementChild;
  if (!square) {
    square = document.createElement('span');
    square.className = 'swatch';
    td.replaceChildren(square, document.createTextNode(''));
  }
  square.style.background = colour;
  if (td.lastChild.data !== value) td.lastChild.data = value;
}

// list makes a definition list of [term, value] pairs; tiles have a box each.
export function list(dl, pairs, boxed = false) {
  const nodes = boxed ? dl.children.length : dl.children.length / 2;
  if (nodes !== pairs.length) {
    dl.replaceChildren(...pairs.flatMap(() => {
      const both = [document.createElement('dt'), document.createElement('dd')];
      if (!boxed) return both;
      const box = document.createElement('div');
      box.append(...both);
      return [box];
    }));
  }
  const terms = dl.querySelectorAll('dt'), values = dl.querySelectorAll('dd');
  pairs.forEach(([term, value], i) => {
    text(terms[i], term);
    text(values[i], String(value));
  });
}

// items makes the items of a list be these texts.
export function items(ul, texts) {
  while (ul.children.length > texts.length) ul.lastElementChild.remove();
  texts.forEach((value, i) => text(ul.children[i] ?? ul.appendChild(document.createElement('li')), value));
}
