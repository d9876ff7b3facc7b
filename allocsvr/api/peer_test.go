package api

import (
	"context"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// successor notes what it is offered.
type successor struct{ accepted []handover.Sealed }

func (s *successor) Accept(sections []handover.Sealed) error {
	s.accepted = append(s.accepted, sections...)
	return nil
}

func (*successor) TakeOffered(_ context.Context, ids []seq.SectionID) []seq.SectionID { return ids }

func TestAMessageForAnotherIncarnationOrClusterIsRefused(t *testing.T) {
	var to successor
	p := &Peer{Cluster: "c1", Session: ownSession, Sections: func() int { return 1 }, Owner: &to}
	body := counters.New(0).AppendBinary(nil)
	for _, row := range []struct {
		name    string
		cluster string
		to      seq.Session
		want    error
	}{
		{"itself", "c1", ownSession, nil},
		{"the incarnation before", "c1", ownSession + 1, seq.ErrNodeUnfit},
		{"another cluster", "c2", ownSession, seq.ErrForeignCluster},
	} {
		_, offer := p.Offer(t.Context(), &pb.OfferRequest{ClusterId: row.cluster, From: uint64(otherSession), To: uint64(row.to),
			Sections: []*pb.SealedSection{{Section: 0, Round: 5, Counters: body}}})
		if !errors.Is(offer, row.want) {
			t.Errorf("%s: offer: got %v, want %v", row.name, offer, row.want)
		}
		if kept := len(to.accepted) > 0; kept != (row.want == nil) {
			t.Errorf("%s: counters kept %v", row.name, kept)
		}
		to.accepted = nil
		if _, err := p.Take(t.Context(), &pb.TakeRequest{ClusterId: row.cluster, From: uint64(otherSession), To: uint64(row.to)}); !errors.Is(err, row.want) {
			t.Errorf("%s: take: got %v, want %v", row.name, err, row.want)
		}
	}
}
