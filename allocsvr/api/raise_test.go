package api

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestCountersOfStringKeysAreCountedAndNotTold(t *testing.T) {
	s := serving(t, seq.Space{Name: "user", Sections: 64, Step: ownerStep}, nil)
	hashers := seq.KeyHashers{"user": {Secret: seq.NewKeySecret()}}
	s.Keys = func() seq.KeyHashers { return hashers }
	for id := range seq.SectionID(64) {
		s.own(id, 1000)
	}
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	floors := []uint64{7, 1, 2, 3, 4, 5, 6, 7, 8}
	got, err := s.BatchRaise(t.Context(), &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{{Uids: []uint64{42}, Keys: keys, AtLeast: floors}}})
	if err != nil || len(got.Results[0].Errors) > 0 || !cmp.Equal(got.Results[0].Values, floors) {
		t.Fatalf("got %v, %v", got, err)
	}
	admin := &Admin{Sections: s.Sections}
	listed, others, high := map[uint64]uint64{}, uint32(0), uint64(0)
	for at := range uint32(64) {
		p, err := admin.Counters(t.Context(), &pb.CountersRequest{Section: at})
		if err != nil {
			t.Fatal(err)
		}
		for i, uid := range p.Uids {
			listed[uid] = p.Values[i]
		}
		others, high = others+p.Others, max(high, p.Highest)
	}
	// One key in 64 lies where its counter would as a UID's, and looks like one.
	if listed[42] != 7 || others < 4 || int(others)+len(listed) != 9 || high != 8 {
		t.Errorf("got %v, %d others, highest %d", listed, others, high)
	}
}

func TestASectionIsRaisedWhereKeysLieAlikeAlone(t *testing.T) {
	s := serving(t, seq.Space{Name: "user", Sections: 4, Step: ownerStep}, nil)
	s.own(2, 1000)
	admin := &Admin{Sections: s.Sections}
	for _, row := range []struct {
		req  *pb.RaiseSectionRequest
		want error
	}{
		{&pb.RaiseSectionRequest{Section: 2, Sections: 4, AtLeast: 5}, nil},
		{&pb.RaiseSectionRequest{Section: 2, Sections: 8, AtLeast: 5}, seq.ErrBadMapping},
		{&pb.RaiseSectionRequest{Section: 4, Sections: 4, AtLeast: 5}, seq.ErrUnknownSection},
		{&pb.RaiseSectionRequest{Space: "x", Section: 2, Sections: 4, AtLeast: 5}, seq.ErrUnknownSpace},
		{&pb.RaiseSectionRequest{Section: 2, Sections: 4, AtLeast: uint64(seq.MaxSeq) + 1}, seq.ErrOverflow},
	} {
		if _, err := admin.RaiseSection(t.Context(), row.req); !errors.Is(err, row.want) {
			t.Errorf("%v: got %v, want %v", row.req, err, row.want)
		}
	}
}
