package storectl

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
)

// Bounds of an event about what was done to the stores.
const (
	eventBound = 5 * time.Second
	maxEvent   = 300 // bytes of text
)

// note writes a change into the cluster's log of events, with the name by which a store knows this
// operator. The change is done already. If it cannot be noted, note only reports that, because the stores
// have log lines of their own.
func note(ctx context.Context, stderr io.Writer, c *storeadmin.Care, verb, what string) {
	ctx, cancel := context.WithTimeout(ctx, eventBound)
	defer cancel()
	by, err := c.Caller(ctx)
	if err == nil {
		documents, session := c.Documents()
		log := arbiter.NewRoutes(arbiter.RoutesConfig{Name: "seqctl", Session: session, Documents: documents, Wall: time.Now})
		what = by + ": " + what
		err = log.Record(ctx, []arbiter.Event{{Kind: "change", Subject: "store " + verb, Reason: what[:min(len(what), maxEvent)]}})
	}
	if err != nil {
		fmt.Fprintf(stderr, "seqctl: not written to the events: %v\n", err)
	}
}
