package call

import (
	"testing"
	"time"
)

func TestManyKeysComeBackSpreadAndFewSoon(t *testing.T) {
	for keys, want := range map[int]time.Duration{0: 0, 1: time.Millisecond / 10, 100: 10 * time.Millisecond, 10_000: time.Second, 1_000_000: time.Second} {
		if got := spreadOf(keys); got != want {
			t.Errorf("%d keys: %v, want %v", keys, got, want)
		}
	}
}
