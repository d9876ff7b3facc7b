package gate

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestCompressedMessagesAreRefusedByNameBeforeTheyAreRead(t *testing.T) {
	g, client := serveGenerous(t, func(c net.Conn) net.Conn { return c })
	_, err := client.Next(t.Context(), &pb.NextRequest{}, grpc.UseCompressor(gzip.Name))
	if status.Code(err) != codes.Unimplemented || !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a call: got %v, want %v as %s", err, seq.ErrBadArgument, codes.Unimplemented)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a stream that is served waits
	defer cancel()
	stream, err := client.Stream(ctx, grpc.UseCompressor(gzip.Name))
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unimplemented || !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a stream: got %v, want %v as %s", err, seq.ErrBadArgument, codes.Unimplemented)
	}
	if n := g.calls.Load(); n != 0 {
		t.Errorf("%d calls were served", n)
	}
}

// drawing is a connection of an account.
func drawing(t *testing.T, a *account) *traffic {
	t.Helper()
	raw, other := net.Pipe()
	t.Cleanup(func() { _ = raw.Close(); _ = other.Close() })
	conn := newTraffic(raw, 1<<40)
	conn.account = a
	return conn
}

func TestTheConnectionWithTheMostUnfinishedBytesMakesRoomForOthers(t *testing.T) {
	a := newAccount(10*piece, 10*piece)
	busy, hoarder, small := drawing(t, a), drawing(t, a), drawing(t, a)
	busy.work.Store(5 * piece)
	for what, err := range map[string]error{"busy": busy.draw(false), "hoarder": hoarder.arrived(4*piece, false), "small": small.arrived(piece, false)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := small.arrived(piece, false); err != nil {
		t.Errorf("one that needs more: %v", err)
	}
	if !hoarder.closed.Load() || busy.closed.Load() || small.closed.Load() {
		t.Errorf("closed: hoarder %v, busy %v, small %v, want the hoarder alone", hoarder.closed.Load(), busy.closed.Load(), small.closed.Load())
	}
	if err := small.arrived(4*piece, false); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("the one with the most: got %v, want %v", err, seq.ErrOverloaded)
	}
	if err := busy.draw(true); err != nil {
		t.Errorf("a control call: %v", err)
	}
	busy.work.Store(0)
	if err := small.draw(false); err != nil {
		t.Errorf("after the others have ended: %v", err)
	}
}

func TestStrangersTakeNoMoreThanTheirShare(t *testing.T) {
	a := newAccount(10*piece, 2*piece)
	known := drawing(t, a)
	var strangers []*traffic
	for _, n := range []int64{maxStranger, maxStranger, maxStranger / 2} {
		s := drawing(t, a)
		s.stranger.Store(true)
		strangers = append(strangers, s)
		if err := s.arrived(n, false); err != nil {
			t.Fatal(err)
		}
	}
	if !strangers[0].closed.Load() && !strangers[1].closed.Load() {
		t.Error("three strangers have two places")
	}
	if err := strangers[2].arrived(maxStranger, false); !errors.Is(err, seq.ErrUnauthenticated) {
		t.Errorf("a stranger with too much: got %v, want %v", err, seq.ErrUnauthenticated)
	}
	if err := known.arrived(7*piece, false); err != nil || known.closed.Load() {
		t.Errorf("one that is known: %v", err)
	}
	strangers[2].watch()
	if !strangers[2].closed.Load() {
		t.Error("a stranger that sends nothing stays")
	}
}

func TestAMessageOfManyEmptyOnesCountsAsWhatItUnpacksTo(t *testing.T) {
	of := (&pb.BatchNextRequest{}).ProtoReflect().Descriptor()
	if n := unpacked(of, bytes.Repeat([]byte{1<<3 | 2, 0}, 1000)); n < 1000*structCost {
		t.Errorf("1,000 empty messages count as %d bytes", n)
	}
	uids := make([]uint64, 1000)
	for i := range uids {
		uids[i] = 1<<63 + uint64(i)
	}
	b, err := proto.Marshal(&pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := unpacked(of, b); n < 8000 || n > 80_000 {
		t.Errorf("1,000 UIDs count as %d bytes", n)
	}
}
