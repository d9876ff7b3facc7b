package client_test

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestManyRaisesHaveEachAnAnswerOfItsOwn(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{})
	uids, floors := make([]seq.UID, seq.MaxBatch), make([]seq.Seq, seq.MaxBatch)
	for i := range uids {
		uids[i], floors[i] = seq.UID(i*64), seq.Seq(i+1)
	}
	floors[77] = 500_000
	cluster.TakeOver(0, 1) // and the client was not told
	got, err := c.RaiseBatch(t.Context(), "", uids, floors, client.Within(100_000))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if i == 77 && !errors.Is(r.Err, seq.ErrForbidden) || i != 77 && (r.Err != nil || r.Seq != floors[i]) {
			t.Fatalf("index %d: got %+v", i, r)
		}
	}
	if n, err := c.Next(t.Context(), client.Key{UID: uids[9]}); err != nil || n != 11 {
		t.Errorf("after it: got %d, %v", n, err)
	}
	keys, err := c.RaiseKeys(t.Context(), "", []string{"a", "b"}, []seq.Seq{5, 6})
	if err != nil || keys[0] != (client.Raised{Seq: 5}) || keys[1] != (client.Raised{Seq: 6}) {
		t.Errorf("string keys: got %v, %v", keys, err)
	}
	for name, err := range map[string]error{
		"a floor too few": second(c.RaiseBatch(t.Context(), "", uids[:2], floors[:1])),
		"no key":          second(c.RaiseBatch(t.Context(), "", nil, nil)),
		"forced":          second(c.RaiseBatch(t.Context(), "", uids[:1], floors[:1], client.Forced)),
		"an empty key":    second(c.RaiseKeys(t.Context(), "", []string{""}, floors[:1])),
	} {
		if !errors.Is(err, seq.ErrBadBatch) && !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestTheOwnerOfASectionThatIsNoneIsNotAsked(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{})
	_, err := pb.NewAdminClient(c.Caller().OwnerOf(1<<20)).Counters(t.Context(), &pb.CountersRequest{})
	if !errors.Is(err, seq.ErrUnknownSection) {
		t.Errorf("got %v, want ErrUnknownSection", err)
	}
}
