package telemetry

import (
	"fmt"
	"testing"
	"time"
)

func TestTheCallersWithTheMostCallsHaveHistogramsOfTheirOwn(t *testing.T) {
	var c Calls
	for range 100 {
		c.Answered("busy", time.Millisecond)
	}
	for i := range 50 {
		c.Answered(fmt.Sprint("once-", i), time.Millisecond)
	}
	c.Answered("", time.Millisecond)
	if n := len(c.callers.by); n > maxCallers {
		t.Errorf("%d callers are kept apart, expected at most %d", n, maxCallers)
	}
	if of := c.callers.by["busy"]; of == nil || of.Buckets().Total() != 100 {
		t.Errorf("the busy caller has %+v", of)
	}
	if n := c.callers.others.Buckets().Total(); n == 0 || n > 51 {
		t.Errorf("%d calls are of others", n)
	}
}
