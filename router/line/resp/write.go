package resp

import (
	"strconv"
	"strings"
)

// writer puts replies together, in RESP2 until HELLO asks for RESP3.
type writer struct {
	buf   []byte
	resp3 bool
}

func (w *writer) line(kind byte, text string) {
	w.buf = append(w.buf, kind)
	w.buf = append(w.buf, text...)
	w.buf = append(w.buf, '\r', '\n')
}

func (w *writer) number(kind byte, n uint64) {
	w.buf = append(w.buf, kind)
	w.buf = strconv.AppendUint(w.buf, n, 10)
	w.buf = append(w.buf, '\r', '\n')
}

// status is a simple string of ours.
func (w *writer) status(text string) { w.line('+', text) }

// fault is an error; what a caller sent may stand in it, so line ends are taken out.
func (w *writer) fault(text string) {
	w.line('-', strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, text))
}

func (w *writer) integer(n uint64) { w.number(':', n) }

// flag is 1 or 0.
func (w *writer) flag(set bool) {
	if set {
		w.integer(1)
	} else {
		w.integer(0)
	}
}

func (w *writer) bulk(text string) {
	w.number('$', uint64(len(text)))
	w.buf = append(w.buf, text...)
	w.buf = append(w.buf, '\r', '\n')
}

func (w *writer) null() {
	if w.resp3 {
		w.line('_', "")
		return
	}
	w.line('$', "-1")
}

func (w *writer) array(n int) { w.number('*', uint64(n)) }

// fields begins a map of n pairs; in RESP2 it is an array.
func (w *writer) fields(n int) {
	if w.resp3 {
		w.number('%', uint64(n))
		return
	}
	w.array(2 * n)
}
