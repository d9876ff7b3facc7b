package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// watched has a call of a method watched, and gives the lines of the log and what was told.
func watched(t *testing.T, times int, ctx context.Context, method string, message any, err error) (lines []map[string]any, done []rpc.Change) {
	t.Helper()
	log := &textlog.Log{}
	c := rpc.NewChanges(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelError})), nil,
		func(one rpc.Change) { done = append(done, one) })
	for range times {
		_, end := c.Watch(ctx, auth.Credentials{}, "10.0.0.1:999", method, message)
		end(&err)
	}
	for text := range strings.Lines(log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines, done
}

func TestAChangeIsALineWithoutAPrincipalTooAndWhateverTheLevel(t *testing.T) {
	for _, one := range []struct {
		method  string
		message any
		err     error
		target  string // empty if there must be no line
		outcome string
	}{
		{pb.Admin_Drain_FullMethodName, &pb.DrainRequest{Node: "a"}, nil, `node "a"`, "OK"},
		{pb.Admin_Drain_FullMethodName, &pb.DrainRequest{Node: "a", Undo: true}, nil, `node "a", undone`, "OK"},
		{pb.Admin_Move_FullMethodName, &pb.MoveRequest{Section: 7, Node: "b"}, fmt.Errorf("move: %w", seq.ErrUnknownNode), `section 7 to node "b"`, "UNKNOWN_NODE"},
		{pb.Admin_Move_FullMethodName, &pb.MoveRequest{Section: 7}, nil, "section 7, unpinned", "OK"},
		{pb.Segment_Put_FullMethodName, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "t"}}, nil, `tag "t"`, "OK"},
		{pb.Segment_Retire_FullMethodName, &pb.SegmentRetireRequest{Tag: "t", Undo: true}, nil, `tag "t", undone`, "OK"},
		{pb.Snowflake_PutNamespace_FullMethodName, &pb.SnowflakePutNamespaceRequest{Name: "n"}, nil, `namespace "n"`, "OK"},
		{pb.Snowflake_RetireNamespace_FullMethodName, &pb.SnowflakeRetireNamespaceRequest{Namespace: "n"}, seq.ErrForbidden, `namespace "n"`, "FORBIDDEN"},
		{pb.Store_Fill_FullMethodName, &pb.FillRequest{Records: make([]*pb.Record, 3), Secret: []byte("hidden")}, nil, "3 registers", "OK"},
		{pb.Store_WindowsOver_FullMethodName, &pb.WindowsOverRequest{Reason: "all\nended"}, nil, `reason "all\nended"`, "OK"},
		{pb.Store_Adopt_FullMethodName, &pb.AdoptRequest{List: &pb.MemberList{Version: 4}}, nil, "member list 4", "OK"},
		{pb.Store_Extend_FullMethodName, &pb.ExtendRequest{Mapping: &pb.Mapping{Spaces: make([]*pb.Space, 2)}}, nil, "mapping of 2 spaces", "OK"},
		{pb.Admin_AddSpace_FullMethodName, &pb.AddSpaceRequest{Space: &pb.Space{Name: "pts"}}, nil, `space "pts"`, "OK"},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 5}, AtLeast: 9, Force: true}, nil, `space "user" uid 5 to 9`, "OK"},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Id: &pb.RaiseRequest_Key{Key: "hidden"}, AtLeast: 9, Force: true}, nil, `space "user" a string key to 9`, "OK"},
		{pb.Sequence_Raise_FullMethodName, &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 5}, AtLeast: 9}, nil, "", ""},
		{pb.Sequence_Next_FullMethodName, &pb.NextRequest{}, nil, "", ""},
		{pb.Admin_Status_FullMethodName, &pb.StatusRequest{}, nil, "", ""},
	} {
		lines, done := watched(t, 1, t.Context(), one.method, one.message, one.err)
		if one.target == "" {
			if len(lines)+len(done) > 0 {
				t.Errorf("%s: got %v", one.method, lines)
			}
			continue
		}
		if len(lines) != 1 || len(done) != map[bool]int{true: 1}[one.err == nil] {
			t.Errorf("%s: got lines %v and told of %v", one.method, lines, done)
			continue
		}
		for key, want := range map[string]string{"msg": "change", "principal": rpc.Anonymous, "method": one.method, "target": one.target, "outcome": one.outcome, "peer": "10.0.0.1:999"} {
			if got := lines[0][key]; got != want {
				t.Errorf("%s: %s is %q, want %q", one.method, key, got, want)
			}
		}
		if text := fmt.Sprint(lines); strings.Contains(text, "hidden") {
			t.Errorf("%s: a secret or a caller's key in %s", one.method, text)
		}
	}
}

func TestAFloodOfChangesLeavesFewLinesAndSaysHowManyItLeftOut(t *testing.T) {
	lines, done := watched(t, 5000, t.Context(), pb.Admin_Rebalance_FullMethodName, &pb.RebalanceRequest{}, nil)
	if n := len(lines); n < 20 || n > 400 {
		t.Errorf("%d lines of 5,000 changes, want 20 a second", n)
	}
	if len(done) != 5000 {
		t.Errorf("told of %d", len(done))
	}
}

func TestWhoWritesAnEventHimselfNamesWhoMadeTheChangeAndNobodyWritesItTwice(t *testing.T) {
	var done []rpc.Change
	c := rpc.NewChanges(slog.New(slog.DiscardHandler), nil, func(one rpc.Change) { done = append(done, one) })
	forwarded := metadata.NewIncomingContext(t.Context(), metadata.Pairs(rpc.ForHeader, "caller/a at 10.9.9.9:1\n\x1b[31m"))
	ctx, end := c.Watch(forwarded, auth.Credentials{}, "10.0.0.1:999", pb.Admin_Rebalance_FullMethodName, &pb.RebalanceRequest{})
	if got, want := rpc.ChangeBy(ctx), "anonymous at 10.0.0.1:999 for caller/a at 10.9.9.9:1??[31m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	end(new(error))
	if len(done) > 0 {
		t.Errorf("an event twice: %v", done)
	}
	if got := rpc.ChangeBy(t.Context()); got != "operator" {
		t.Errorf("without a call: %q", got)
	}
	out, _ := metadata.FromOutgoingContext(rpc.Forwarding(ctx))
	if got := out.Get(rpc.ForHeader); len(got) != 1 || got[0] != "anonymous at 10.0.0.1:999" {
		t.Errorf("passed on as %q", got)
	}
	failed := errors.New("x")
	_, end = c.Watch(t.Context(), auth.Credentials{}, "", pb.Admin_Rebalance_FullMethodName, &pb.RebalanceRequest{})
	if end(&failed); len(done) > 0 {
		t.Errorf("an event of what failed: %v", done)
	}
}
