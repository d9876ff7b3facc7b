package api

import (
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// watched opens a watch of some uids, named from 0 on.
func watched(t *testing.T, s *service, uids ...uint64) pb.Sequence_WatchClient {
	t.Helper()
	client, _ := opened(t, s.Sequence)
	w, err := client.Watch(t.Context(), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	wants(t, w, &pb.WatchRequest{Add: []*pb.Batch{{Uids: uids}}})
	return w
}

func wants(t *testing.T, w pb.Sequence_WatchClient, r *pb.WatchRequest) {
	t.Helper()
	if err := w.Send(r); err != nil {
		t.Fatal(err)
	}
}

// told returns the next reply with keys.
func told(t *testing.T, w pb.Sequence_WatchClient) *pb.WatchReply {
	t.Helper()
	for {
		r, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Ids)+len(r.Errors) > 0 {
			return r
		}
	}
}

// isKey checks a reply about one key in a space without tickets.
func isKey(t *testing.T, r *pb.WatchReply, id uint32, last uint64) {
	t.Helper()
	if len(r.Ids) != 1 || r.Ids[0] != id || r.Last[0] != last || r.Marks[0] != last || r.Fences[0] != 0 || r.UnknownMs[0] != 0 || len(r.Errors) > 0 {
		t.Errorf("got %v, want %d of key %d", r, last, id)
	}
}

func takes(t *testing.T, s *service, uid uint64) uint64 {
	t.Helper()
	got, err := s.Next(t.Context(), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uid}, Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	return got.Last
}

func TestAWatchTellsItsKeysWhileTheyComeAndGo(t *testing.T) {
	s, uids := twoSections(t)
	w := watched(t, s, uids[0])
	isKey(t, told(t, w), 0, 0)
	takes(t, s, uids[0])
	isKey(t, told(t, w), 0, 1)
	wants(t, w, &pb.WatchRequest{Add: []*pb.Batch{{Uids: uids[1:]}}, FirstId: 5}) // its section is on its way
	wants(t, w, &pb.WatchRequest{Add: []*pb.Batch{{Space: "other", Uids: []uint64{1, 2}}}, FirstId: 7})
	bad := told(t, w)
	if len(bad.Errors) != 2 || bad.Errors[1].Index != 8 || !errors.Is(rpc.FromKeyError(bad.Errors[0]), seq.ErrUnknownSpace) {
		t.Errorf("got %v, want two keys of an unknown space", bad)
	}
	s.own(1, ownerStep)
	isKey(t, told(t, w), 5, 0)
	wants(t, w, &pb.WatchRequest{Remove: []*pb.Batch{{Uids: uids[:1]}}})
	harness.Until(t, "the key is not watched", func() bool { return s.Sections.Watches().Keys == 1 })
	takes(t, s, uids[0])
	takes(t, s, uids[1])
	isKey(t, told(t, w), 5, 1)
	s.Sections.Section(1).Drop(seq.Epoch{Round: 7, Session: ownSession}, "b:1")
	gone := told(t, w)
	if len(gone.Errors) != 1 || gone.Errors[0].Index != 5 || !errors.Is(rpc.FromKeyError(gone.Errors[0]), seq.ErrNotOwner) {
		t.Errorf("got %v, want the news that the section went", gone)
	}
	if err := w.CloseSend(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "no watch", func() bool { return s.Sections.Watches().Watchers == 0 })
}

func TestAWatchThatIsNotReadIsBoundedAndGetsTheNewest(t *testing.T) {
	s, uids := serving(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep}, nil), []uint64{1, 2}
	s.own(0, uint64(seq.MaxSeq))
	w := watched(t, s, uids...)
	const takesOfEach = 200_000
	for range takesOfEach {
		takes(t, s, uids[0])
		takes(t, s, uids[1])
	}
	replies, last := 0, map[uint32]uint64{}
	for last[0] < takesOfEach || last[1] < takesOfEach {
		r := told(t, w)
		replies++
		for i, id := range r.Ids {
			if r.Last[i] < last[id] {
				t.Fatalf("key %d went from %d to %d", id, last[id], r.Last[i])
			}
			last[id] = r.Last[i]
		}
	}
	// A reply takes some 60 bytes, and what is on its way is bounded by windows of some 100 KB.
	if replies > takesOfEach/10 {
		t.Errorf("%d replies waited for %d changes", replies, 2*takesOfEach)
	}
}

func TestAWatchRequestThatIsNotSoundEndsTheWatch(t *testing.T) {
	s, _ := twoSections(t)
	for name, row := range map[string]struct {
		r    *pb.WatchRequest
		want error
	}{
		"nothing":       {&pb.WatchRequest{}, seq.ErrBadBatch},
		"too many keys": {&pb.WatchRequest{Add: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}}, Remove: []*pb.Batch{{Uids: make([]uint64, 1)}}}, seq.ErrBadBatch},
		"a bad key":     {&pb.WatchRequest{Add: []*pb.Batch{{Keys: []string{""}}}}, seq.ErrBadArgument},
	} {
		client, _ := opened(t, s.Sequence)
		w, err := client.Watch(t.Context(), grpc.WaitForReady(true))
		if err != nil {
			t.Fatal(err)
		}
		wants(t, w, row.r)
		for err == nil {
			_, err = w.Recv()
		}
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
}

func TestAnIdleWatchSaysThatItsServerIsThere(t *testing.T) {
	s, uids := twoSections(t)
	w := watched(t, s, uids[0])
	isKey(t, told(t, w), 0, 0)
	for range 2 {
		if r, err := w.Recv(); err != nil || len(r.Ids)+len(r.Errors) != 0 {
			t.Errorf("got %v, %v", r, err)
		}
	}
}
