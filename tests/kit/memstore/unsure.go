package memstore

import (
	"context"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Unsure is a group of all stores of which the first swap of a document may end without a known
// outcome. Not safe for concurrent use.
type Unsure struct {
	*quorum.Group

	lost, applied bool
}

// Unsure is closed with the test. lost: the first swap returns quorum.ErrUnknownOutcome, and was
// applied or not.
func (c *Cluster) Unsure(t testing.TB, lost, applied bool) *Unsure {
	t.Helper()
	group, err := c.Group()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(group.Close)
	return &Unsure{group, lost, applied}
}

// SwapDocument is Group.SwapDocument, except that it may lose one answer.
func (u *Unsure) SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error) {
	lost := u.lost
	if u.lost = false; lost && !u.applied {
		return quorum.Document{}, quorum.ErrUnknownOutcome
	}
	doc, err := u.Group.SwapDocument(ctx, session, reg, old, body)
	if lost && err == nil {
		return quorum.Document{}, quorum.ErrUnknownOutcome
	}
	return doc, err
}
