package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// asks makes a request by each call that carries ids.
func (s *service) asks(space string, id []byte, sent ...int64) map[string]error {
	_, next := s.Next(s.t.Context(), &pb.NextRequest{Space: space, Id: &pb.NextRequest_Uid{Uid: 7}, RequestId: id})
	reply, batch := s.BatchNext(s.t.Context(), &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{8}}, {Space: space, Uids: []uint64{7}, RequestIds: [][]byte{id}, FirstSentMs: sent}}})
	if batch == nil { // a space that keeps none refuses its own batch
		batch = rpc.FromKeyError(reply.Results[1].Errors[0])
	}
	_, lookup := s.Lookup(s.t.Context(), &pb.LookupRequest{Space: space, Id: &pb.LookupRequest_Uid{Uid: 7}, RequestId: id})
	return map[string]error{"Next": next, "BatchNext": batch, "Lookup": lookup}
}

func TestARequestIDThatCannotBeKeptIsRefusedByNameAndTakesNothing(t *testing.T) {
	s := serving(t, seq.Space{Name: seq.DefaultSpace, Sections: 1, Step: 100}, nil)
	s.own(0, 100)
	for _, row := range []struct {
		id   []byte
		want error
		text string
	}{
		{[]byte{}, seq.ErrBadArgument, "of 0 bytes, expected 1 to 64"},
		{make([]byte, 65), seq.ErrBadArgument, "of 65 bytes, expected 1 to 64"},
		{make([]byte, 64), seq.ErrIDNotKept, `request ids are kept by spaces of mode=exact only: space "user" is of mode=ordered`},
	} {
		for call, err := range s.asks("", row.id) {
			if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
				t.Errorf("%s, %d bytes: got %v, want %q", call, len(row.id), err, row.text)
			}
		}
	}
	for _, b := range []*pb.Batch{
		{Uids: []uint64{7, 8}, RequestIds: [][]byte{{1}}},
		{Uids: []uint64{7}, RequestIds: [][]byte{{1}, {2}}},
		{Uids: []uint64{7}, RequestIds: [][]byte{{1}}, FirstSentMs: []int64{1, 2}},
		{Uids: []uint64{7}, FirstSentMs: []int64{1}},
	} {
		if _, err := s.BatchNext(t.Context(), &pb.BatchNextRequest{Batches: []*pb.Batch{b}}); !errors.Is(err, seq.ErrBadBatch) {
			t.Errorf("%v: got %v", b, err)
		}
	}
	for uid, want := range map[uint64]uint64{7: 1, 8: 2} { // 8 was beside a batch that was refused by its space
		if got, err := s.Next(t.Context(), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uid}}); err != nil || got.First != want {
			t.Errorf("uid %d: got %v, %v, want %d: nothing else was taken before", uid, got, err, want)
		}
	}
}

func TestRequestsReachTheSectionAsTheyWereSent(t *testing.T) {
	space := &seq.Space{Name: "orders", Mode: seq.Exact}
	got, err := requestsOf(space, [][]byte{[]byte("a"), {0xff}, []byte("c")}, []int64{1_700_000_000_123, 0, -5})
	if err != nil || len(got) != 3 {
		t.Fatalf("got %v, %v", got, err)
	}
	if got[0].ID != "a" || !got[0].Sent.Equal(time.UnixMilli(1_700_000_000_123)) || got[1].ID != "\xff" || !got[1].Sent.IsZero() || got[2].Sent.UnixMilli() != -5 {
		t.Errorf("got %+v", got)
	}
	if got, err := requestsOf(space, nil, nil); got != nil || err != nil {
		t.Errorf("keys without ids have requests %v, %v", got, err)
	}
}

// A refusal of package exact has the same name on both ways over the wire. A conflict also brings the
// numbers that the request id has.
func TestRefusalsOfExactSpacesHaveNamesOnTheWire(t *testing.T) {
	for _, row := range []struct {
		err  error
		want error
		code pb.ErrorCode
	}{
		{&exact.Conflict{First: 7, Count: 3, Asked: 5}, seq.ErrIDConflict, pb.ErrorCode_ERROR_CODE_ID_CONFLICT},
		{fmt.Errorf("%w: first sent at 5", exact.ErrExpired), seq.ErrIDExpired, pb.ErrorCode_ERROR_CODE_ID_EXPIRED},
		{fmt.Errorf("%w: first sent at 9", exact.ErrTime), seq.ErrSentAhead, pb.ErrorCode_ERROR_CODE_SENT_AHEAD},
		{fmt.Errorf("%w: 9 kept", exact.ErrFull), seq.ErrOverloaded, pb.ErrorCode_ERROR_CODE_OVERLOADED},
		{fmt.Errorf("%w: 9 kept: %w", exact.ErrFull, seq.ErrExactMemory), seq.ErrExactMemory, pb.ErrorCode_ERROR_CODE_EXACT_MEMORY},
		{fmt.Errorf("%w: last number 9", exact.ErrSpent), seq.ErrOverflow, pb.ErrorCode_ERROR_CODE_OVERFLOW},
		{fmt.Errorf("section 4: %w: %w", logs.ErrUnknown, context.DeadlineExceeded), seq.ErrOutcomeUnknown, pb.ErrorCode_ERROR_CODE_OUTCOME_UNKNOWN},
		{fmt.Errorf("commit: %w", seq.ErrNoQuorum), seq.ErrNoQuorum, pb.ErrorCode_ERROR_CODE_NO_QUORUM},
	} {
		told := refusal(fmt.Errorf("section 4: %w", row.err))
		if !strings.Contains(told.Error(), strings.TrimPrefix(row.want.Error(), "overloaded")) && row.want != seq.ErrOverflow && row.want != seq.ErrSentAhead {
			t.Errorf("%v: text is %q", row.err, told)
		}
		if got := rpc.CodeOf(told); got != row.code {
			t.Errorf("%v: code %v, want %v", row.err, got, row.code)
		}
		for way, back := range map[string]error{
			"a call": rpc.FromStatus(rpc.ToStatus(told)), "a key": rpc.FromKeyError(rpc.ToKeyError(0, told)),
			"a key by a router": rpc.FromKeyError(rpc.ToKeyError(0, rpc.FromKeyError(rpc.ToKeyError(0, told)))),
			"a router":          rpc.FromStatus(rpc.ToStatus(rpc.FromKeyError(rpc.ToKeyError(0, told)))),
		} {
			if !errors.Is(back, row.want) {
				t.Errorf("%v: %s brings %v", row.err, way, back)
			}
			var had *seq.IDConflict
			if row.want == seq.ErrIDConflict && (!errors.As(back, &had) || had.First != 7 || had.Count != 3) {
				t.Errorf("%s brings %v, and %+v of what the id has got", way, back, had)
			}
			if st, _ := status.FromError(back); strings.Count(st.Message(), "request id was used") > 1 {
				t.Errorf("%s says it twice: %q", way, st.Message())
			}
		}
	}
}
