package ctl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Watch answers each key with 7 and then 8.
func (n *node) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, b := range r.GetAdd() {
			for i := range b.GetUids() {
				for last := range uint64(2) {
					one := []uint64{7 + last}
					if err := stream.Send(&pb.WatchReply{Ids: []uint32{r.GetFirstId() + uint32(i)}, Last: one, Marks: one, Fences: []uint64{0}, UnknownMs: []uint32{0}}); err != nil {
						return err
					}
				}
			}
		}
	}
}

func TestWatchShowsThePresentOfEachKey(t *testing.T) {
	n := serve(t)
	out, err := call(t, "watch", "1", "2", "--addr", n.addr, "--changes", "2")
	if err != nil || len(strings.Split(strings.TrimSpace(out), "\n")) != 3 || !strings.HasPrefix(out, "SPACE") {
		t.Errorf("got %q, %v, want a header and two lines", out, err)
	}
	out, err = call(t, "watch", "1", "--addr", n.addr, "--timeout", "300ms", "-o", "json")
	if err != nil || !strings.Contains(out, `"uid":1,"mark":8,"fence":0,"last":8,"unknown_ms":0}`) {
		t.Errorf("until the timeout: got %q, %v", out, err)
	}
	out, err = call(t, "watch", "1", "--space", "other", "--addr", n.addr)
	if !errors.Is(err, seq.ErrUnknownSpace) || !strings.Contains(out, "other") {
		t.Errorf("an unknown space: got %q, %v", out, err)
	}
}

func TestLinesOfAWatch(t *testing.T) {
	var out strings.Builder
	one, two := client.Key{Space: "inbox", UID: 1}, client.StringKey("inbox", "room")
	l := &watchLines{to: &out, format: ui.FormatTable, space: "inbox", names: map[client.Key]survey.CounterID{one: survey.CounterOf(1), two: {Key: "room"}}, watched: 2}
	news := []client.Update{
		{Key: one, Mark: client.Mark{Seq: 3, Fence: 2, Last: 5}},
		{Key: two, Mark: client.Mark{Last: 9, KnownIn: time.Second}},
		{Key: two, Mark: client.Mark{Err: context.DeadlineExceeded}},
	}
	over, err := l.print(news)
	if over || err != nil {
		t.Errorf("got %v, %v", over, err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	if want := "SPACE KEY MARK FENCE LAST inbox 1 3 2 5 inbox room - - 9 known in 1s inbox room - - - context deadline exceeded"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, key := range []client.Key{one, two} {
		if over, _ := l.print([]client.Update{{Key: key, Mark: client.Mark{Err: seq.ErrForbidden}, Ended: true}}); over != (i == 1) {
			t.Errorf("key %d ended: over %v", i, over)
		}
	}
	if !errors.Is(l.bad, seq.ErrForbidden) {
		t.Errorf("got %v", l.bad)
	}
}
