package processes

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// uid is whose numbers bad input must not cost.
const uid = 7

func TestBadInputGetsANamedErrorAndCostsNoNumber(t *testing.T) {
	c := start(t, nil)
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, AttemptTimeout: attempt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	next := func(t *testing.T, want seq.Seq) {
		t.Helper()
		if got, err := sdk.Next(harness.Within(t), client.Key{UID: uid}); err != nil || got != want {
			t.Fatalf("next: got %d, %v, want %d", got, err, want)
		}
	}
	next(t, 1)
	t.Run("calls", func(t *testing.T) { badCalls(t, c) })
	next(t, 2)
	t.Run("commands", func(t *testing.T) { badCommands(t, c) })
	next(t, 3)
	t.Run("logs", func(t *testing.T) { badLogs(t, c) })
	next(t, 4)
	t.Run("daemons", func(t *testing.T) { intruders(t, c) })
	next(t, 5)
	t.Run("a store that lost its database", func(t *testing.T) { emptyStore(t, c) })
	next(t, 6)
}

// badCalls asks a router and an AllocSvr over gRPC.
func badCalls(t *testing.T, c *localcluster.Cluster) {
	max := uint64(seq.MaxSeq)
	tooMany := make([]uint64, seq.MaxBatch+1)
	for i := range tooMany {
		tooMany[i] = uid
	}
	next := func(space string, count uint32) *pb.NextRequest {
		return &pb.NextRequest{Space: space, Id: &pb.NextRequest_Uid{Uid: uid}, Count: count}
	}
	batch := func(b ...*pb.Batch) *pb.BatchNextRequest { return &pb.BatchNextRequest{Batches: b} }
	rows := []struct {
		name string
		call func(pb.SequenceClient) error
		want error
		code codes.Code
	}{
		{"count above the limit", nextCall(t, next("", seq.MaxCount+1)), seq.ErrBadCount, codes.InvalidArgument},
		{"count of all bits", nextCall(t, next("", math.MaxUint32)), seq.ErrBadCount, codes.InvalidArgument},
		{"unknown space", nextCall(t, next("nowhere", 1)), seq.ErrUnknownSpace, codes.NotFound},
		{"batch without a key", batchCall(t, batch()), seq.ErrBadBatch, codes.InvalidArgument},
		{"batch too large", batchCall(t, batch(&pb.Batch{Uids: tooMany})), seq.ErrBadBatch, codes.InvalidArgument},
		{"batches too large together", batchCall(t, batch(&pb.Batch{Uids: tooMany[:seq.MaxBatch]}, &pb.Batch{Uids: tooMany[:1]})), seq.ErrBadBatch, codes.InvalidArgument},
		{"counts that do not match", batchCall(t, batch(&pb.Batch{Uids: []uint64{uid}, Counts: []uint32{1, 1}})), seq.ErrBadBatch, codes.InvalidArgument},
		{"raise above 2^53-1", raiseCall(t, 8, max+1), seq.ErrOverflow, codes.OutOfRange},
		{"next above 2^53-1", func(s pb.SequenceClient) error {
			if err := raiseCall(t, 9, max)(s); err != nil {
				return fmt.Errorf("raise: %w", err)
			}
			_, err := s.Next(harness.Within(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 9}, Count: 1})
			return err
		}, seq.ErrOverflow, codes.OutOfRange},
		{"a range that would pass 2^53-1", func(s pb.SequenceClient) error {
			if err := raiseCall(t, 10, max-5)(s); err != nil {
				return fmt.Errorf("raise: %w", err)
			}
			_, err := s.Next(harness.Within(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 10}, Count: 6})
			return err
		}, seq.ErrOverflow, codes.OutOfRange},
	}
	router := sequence(t, c.GRPC())
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			wantError(t, "router", row.call(router), row.want, row.code)
			wantError(t, "owner", askOwner(t, c, row.call), row.want, row.code)
		})
	}
	// In many languages a field that is not set arrives as its zero value. The server does not refuse it.
	none := func(s pb.SequenceClient) error {
		got, err := s.Next(harness.Within(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 11}})
		if err == nil && got.GetFirst() != got.GetLast() {
			err = fmt.Errorf("got %d to %d, want one number", got.GetFirst(), got.GetLast())
		}
		return err
	}
	if err := errors.Join(none(router), askOwner(t, c, none)); err != nil {
		t.Errorf("count 0: %v", err)
	}
}

func nextCall(t *testing.T, req *pb.NextRequest) func(pb.SequenceClient) error {
	return func(s pb.SequenceClient) error {
		_, err := s.Next(harness.Within(t), req)
		return err
	}
}

func batchCall(t *testing.T, req *pb.BatchNextRequest) func(pb.SequenceClient) error {
	return func(s pb.SequenceClient) error {
		_, err := s.BatchNext(harness.Within(t), req)
		return err
	}
}

func raiseCall(t *testing.T, uid, least uint64) func(pb.SequenceClient) error {
	return func(s pb.SequenceClient) error {
		_, err := s.Raise(harness.Within(t), &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: uid}, AtLeast: least, Force: true})
		return err
	}
}

func sequence(t *testing.T, addr string) pb.SequenceClient {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewSequenceClient(conn)
}

// askOwner asks the allocators one after the other, until one does not send it on to
// another one.
func askOwner(t *testing.T, c *localcluster.Cluster, call func(pb.SequenceClient) error) (err error) {
	t.Helper()
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		if err = call(sequence(t, addr)); !errors.Is(err, seq.ErrNotOwner) {
			return err
		}
	}
	return err
}

func wantError(t *testing.T, who string, got, want error, code codes.Code) {
	t.Helper()
	if !errors.Is(got, want) || status.Code(got) != code {
		t.Errorf("%s: got %v (%v), want %v (%v)", who, got, status.Code(got), want, code)
	}
}

// badCommands asks through seqctl, which tells a wrong call (2) from a failure (1).
func badCommands(t *testing.T, c *localcluster.Cluster) {
	rows := []struct {
		name string
		args []string
		code int
		want string // in the error
	}{
		{"count 0", []string{"next", "7", "--count", "0"}, 2, seq.ErrBadCount.Error()},
		{"count above the limit", []string{"next", "7", "--count", "1048577"}, 2, seq.ErrBadCount.Error()},
		{"no number", []string{"next", "seven"}, 2, `"seven"`},
		{"unknown space", []string{"next", "7", "--space", "nowhere"}, 1, seq.ErrUnknownSpace.Error()},
		{"raise above 2^53-1", []string{"raise", "8", "9007199254740992"}, 2, "2^53-1"},
		{"next above 2^53-1", []string{"next", "9"}, 1, seq.ErrOverflow.Error()},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, "seqctl", append(row.args, "--addr", c.GRPC(), "--timeout", "60s")...)
			wantFailure(t, got, row.code, row.want)
		})
	}
}

// wantFailure checks that a command failed as it should.
func wantFailure(t *testing.T, e harness.Ended, code int, texts ...string) {
	t.Helper()
	if e.Code != code {
		t.Errorf("exit %d, want %d: %s", e.Code, code, e.Stderr)
	}
	for _, text := range texts {
		if !strings.Contains(e.Stderr, text) {
			t.Errorf("the error does not name %q: %s", text, e.Stderr)
		}
	}
}

func badLogs(t *testing.T, c *localcluster.Cluster) {
	rows := []struct {
		name, log string
		answered  int
		want      []string
	}{
		{"a field too few", "1 100 5\n2 100 6\n3 100\n4 100 8\n", 2, []string{"line 3", "bad line", "SENDER RECIPIENT UNIX_SECONDS"}},
		{"no number", "1 101 5\n2 one 6\n", 1, []string{"line 2", "bad line", "RECIPIENT"}},
		{"a number too large", "1 18446744073709551616 5\n", 0, []string{"line 1", "2^64-1"}},
		{"an endless line", "1 102 5\n" + strings.Repeat("9", 1<<16) + "\n", 1, []string{"line 2", "line too long"}},
		{"not unpacked to its end", "\x1f\x8b\x08\x00\x00", 0, []string{"gzip"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			path, out := filepath.Join(dir, "log"), filepath.Join(dir, "answers")
			if err := os.WriteFile(path, []byte(row.log), 0o644); err != nil {
				t.Fatal(err)
			}
			wantFailure(t, run(t, "seqctl", replayArgs(c, path, out)...), 1, row.want...)
			if text, err := os.ReadFile(out); row.answered > 0 && (err != nil || strings.Count(string(text), "\n") != row.answered) {
				t.Errorf("%d messages before the bad line, answers are %q, %v", row.answered, text, err)
			}
		})
	}
	wantFailure(t, run(t, "seqctl", replayArgs(c, "no-such-log", filepath.Join(t.TempDir(), "answers"))...), 1, "no-such-log")
}
