package router

import (
	"strings"
	"testing"
	"time"
)

// follow asks once a second, as the marks say: + answered, - silence, and . for a second
// in which the process stood still. It gives R for ready and A for away after each.
func follow(r *reach, marks string) string {
	var out strings.Builder
	now := r.heard
	for _, m := range marks {
		now += time.Second
		if m == '.' {
			out.WriteByte('.')
			continue
		}
		r.note(now, m == '+')
		out.WriteByte(map[bool]byte{false: 'R', true: 'A'}[r.away])
	}
	return out.String()
}

func TestTheClusterCountsAsAwayOnlyAfterALongSilence(t *testing.T) {
	for _, test := range []struct{ name, marks, want string }{
		{"it answers", "+++++", "RRRRR"},
		{"a failover", "++---++", "RRRRRRR"},
		{"one failover after the other", "----+----+", "RRRRRRRRRR"},
		{"all are gone", "+-------", "RRRRRAAA"},
		{"nobody from the start", "------", "RRRRAA"},
		{"all come back", "------++", "RRRRAAAR"},
		{"they come and go", "------+-+-++", "RRRRAAAAAAAR"},
		{"gone again", "------++-----", "RRRRAAARRRRRA"},
		{"the process stood still", "+..........--+", "R..........RRR"},
		{"and then nobody answers", "+..........---", "R..........RRA"},
	} {
		r := &reach{after: 5 * time.Second, heard: time.Hour}
		if got := follow(r, test.marks); got != test.want {
			t.Errorf("%s: %s: got %s, want %s", test.name, test.marks, got, test.want)
		}
	}
}
