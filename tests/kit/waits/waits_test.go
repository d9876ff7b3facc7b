package waits_test

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// ending is a test whose binary ends at a time, or never.
type ending struct {
	testing.TB

	left    time.Duration
	limited bool
}

func (e ending) Deadline() (time.Time, bool) { return time.Now().Add(e.left), e.limited }

func TestAWaitEndsBeforeTheBinaryDoes(t *testing.T) {
	for name, row := range map[string]struct {
		test        testing.TB
		least, most time.Duration
	}{
		"much is left":   {ending{t, time.Hour, true}, time.Minute, time.Minute},
		"little is left": {ending{t, 40 * time.Second, true}, 19 * time.Second, 20 * time.Second},
		"no limit":       {ending{t, 0, false}, time.Minute, time.Minute},
		"a benchmark":    {&testing.B{}, time.Minute, time.Minute},
	} {
		if got := waits.AtMost(row.test, time.Minute); got < row.least || got > row.most {
			t.Errorf("%s: got %v, want %v to %v", name, got, row.least, row.most)
		}
	}
}
