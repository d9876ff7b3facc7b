package secure

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// reasons returns the log of events: kind, subject and reason of each.
func (s *site) reasons() (all []string) {
	s.t.Helper()
	reply, err := pb.NewAdminClient(s.dial(s.byToken(auth.Operator), s.alloc.Addr())).Events(s.t.Context(), &pb.EventsRequest{Limit: 1000})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range reply.GetEvents() {
		all = append(all, e.GetKind()+" "+e.GetSubject()+" "+e.GetReason())
	}
	return all
}

// has says whether a text has all the parts.
func has(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// line fails the test unless a line of the log has all the parts.
func (s *site) line(parts ...string) {
	s.t.Helper()
	for text := range strings.Lines(s.log.String()) {
		if has(text, parts...) {
			return
		}
	}
	s.t.Errorf("no line with %q in\n%s", parts, s.log)
}

func (s *site) event(parts ...string) {
	s.t.Helper()
	harness.Until(s.t, fmt.Sprintf("an event with %q", parts), func() bool {
		for _, text := range s.reasons() {
			if has(text, parts...) {
				return true
			}
		}
		return false
	})
}

func TestEachChangeIsALineAndAnEventWithTheNameOfWhoMadeIt(t *testing.T) {
	s := startSite(t, auth.Require)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	const ops = "operator/operator-1"
	conn := s.dial(s.byCert(auth.Operator), s.alloc.Addr())
	admin := pb.NewAdminClient(conn)
	harness.Until(t, "the node in the table", func() bool {
		_, err := admin.Move(ctx, &pb.MoveRequest{Section: 3, Node: "alloc-1"})
		return err == nil
	})
	forged := metadata.AppendToOutgoingContext(ctx, rpc.ForHeader, "operator/somebody-else")
	if _, err := pb.NewSegmentClient(conn).Put(forged, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "orders"}}); err != nil {
		t.Fatal(err)
	}
	raise := &pb.RaiseRequest{Id: &pb.RaiseRequest_Uid{Uid: 7}, AtLeast: 1 << 40, Force: true}
	if _, err := pb.NewSequenceClient(conn).Raise(ctx, raise); err != nil {
		t.Fatal(err)
	}
	for method, target := range map[string]string{"Admin/Move": "section 3", "Segment/Put": "orders", "Sequence/Raise": "uid 7"} {
		s.line("msg=change", "principal="+ops, "role=operator", method, target, "outcome=OK", "peer=127.0.0.1:")
	}
	s.event("move section 3", ops+" at 127.0.0.1:")
	s.event(`change tag "orders"`, ops+" at 127.0.0.1:", "Put")
	s.event("raise section", ops+" at 127.0.0.1:", "uid 7")

	store := pb.NewStoreClient(s.dial(s.byToken(auth.Operator), s.store.Addr()))
	if _, err := store.WindowsOver(ctx, &pb.WindowsOverRequest{ClusterId: "another", Reason: "tried"}); err == nil {
		t.Error("a store of another cluster heard it")
	}
	s.line("msg=change", "principal="+ops, "WindowsOver", "tried", "outcome=FOREIGN_CLUSTER")

	// A refused caller leaves a line, and no event, because the log of events is short.
	before := len(s.reasons())
	for w, parts := range map[string][]string{
		"caller": {"principal=caller/caller-1", "outcome=FORBIDDEN"}, "nobody": {"principal=anonymous", "outcome=UNAUTHENTICATED"},
	} {
		as := s.nobody()
		if w == "caller" {
			as = s.byToken(auth.Caller)
		}
		if _, err := pb.NewAdminClient(s.dial(as, s.alloc.Addr())).Move(ctx, &pb.MoveRequest{Section: 5, Node: "x"}); err == nil {
			t.Errorf("%s moved a section", w)
		}
		s.line(append(parts, "msg=change", "section 5")...)
	}
	if code, _ := s.web(s.byToken(auth.Operator), "POST", "/v1/raise", `{"uid":8,"at_least":100000000000,"force":true}`); code != 403 {
		t.Errorf("by the router: %d", code)
	}
	s.line("msg=change", "principal="+ops, "uid 8", "outcome=FORBIDDEN")
	if after := s.reasons(); len(after) != before {
		t.Errorf("events of what was refused: %q", after[before:])
	}
	if strings.Contains(s.log.String(), "somebody-else") {
		t.Error("one who is no router named somebody else")
	}
	s.noSecrets()
}

func TestARouterSaysForWhomItPassesAForcedRaiseOn(t *testing.T) {
	s := startSite(t, auth.Accept)
	if code, answer := s.web(s.byToken(auth.Operator), "POST", "/v1/raise", `{"uid":8,"at_least":100000000000,"force":true}`); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	s.line("msg=change", "principal=operator/operator-1", "uid 8", "outcome=OK", "peer=127.0.0.1:")
	s.line("msg=change", "principal=router/router-1", "uid 8", "outcome=OK", `for="operator/operator-1 at 127.0.0.1:`)
	s.event("raise section", "router/router-1 at 127.0.0.1:", "for operator/operator-1 at 127.0.0.1:", "uid 8")
	s.noSecrets()
}
