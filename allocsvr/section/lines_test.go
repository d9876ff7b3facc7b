package section

import (
	"testing"
	"unsafe"
)

func TestATakeTouchesTwoLinesOfACell(t *testing.T) {
	const line = 64
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 8 bytes are needed: elsewhere a cell is smaller, and lies as it may")
	}
	var c Section
	if size := unsafe.Sizeof(c); size%line != 0 {
		t.Errorf("a cell has %d bytes, want whole lines of %d", size, line)
	}
	first := (unsafe.Offsetof(c.pace) + unsafe.Offsetof(c.pace.step)) / line
	for name, at := range map[string]uintptr{
		"mu": unsafe.Offsetof(c.mu), "space": unsafe.Offsetof(c.space), "state": unsafe.Offsetof(c.state), "losses": unsafe.Offsetof(c.losses),
		"until": unsafe.Offsetof(c.until), "confirmed": unsafe.Offsetof(c.confirmed), "target": unsafe.Offsetof(c.target),
	} {
		if at/line != first {
			t.Errorf("%s, at %d, is in line %d, want it in that of pace.step, %d", name, at, at/line, first)
		}
	}
	second, table := unsafe.Offsetof(c.id)/line, unsafe.Offsetof(c.table)
	if second != first+1 || table/line != second || (table+hotTable-1)/line != second {
		t.Errorf("id at %d and %d bytes of the table from %d on, want them in line %d", unsafe.Offsetof(c.id), hotTable, table, first+1)
	}
}

// hotTable is the number of bytes of a counters.Table that a take of a known UID needs.
const hotTable = 56
