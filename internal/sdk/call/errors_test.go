package call

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func TestWhatWasAskedStandsInAnErrorOnce(t *testing.T) {
	const what = `generate: namespace "o"`
	for _, row := range []struct{ from, want string }{
		{"clock off", what + ": clock off"},
		{what + ": clock off", what + ": clock off"}, // a router's SDK has said so
		{"context deadline exceeded: last attempt: " + what + ": clock off", "context deadline exceeded: last attempt: " + what + ": clock off"},
		{`generate: namespace "other": clock off`, what + `: generate: namespace "other": clock off`},
	} {
		err := Told(what, fmt.Errorf("%s%w", row.from, silent{}))
		if err.Error() != row.want || !errors.Is(err, seq.ErrClockOff) {
			t.Errorf("got %q, want %q", err, row.want)
		}
	}
}

// silent is a clock that is off, without a text.
type silent struct{}

func (silent) Error() string   { return "" }
func (silent) Is(e error) bool { return e == seq.ErrClockOff }
