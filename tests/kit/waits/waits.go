// Package waits bounds the waits of tests. Nothing but tests may import it.
package waits

import (
	"testing"
	"time"
)

// AtMost returns how long a test waits for what is to come: most, or half of the time that its binary has left
// if that is less. A test that waits in vain then fails by itself, and the binary goes on.
func AtMost(t testing.TB, most time.Duration) time.Duration {
	bound, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return most
	}
	end, limited := bound.Deadline()
	if !limited {
		return most
	}
	return min(most, time.Until(end)/2)
}
