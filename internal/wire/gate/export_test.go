package gate

import "testing"

// Recover lets servers recover from panics as outside of tests, as long as the test runs.
func Recover(t *testing.T) {
	recovers = true
	t.Cleanup(func() { recovers = false })
}
