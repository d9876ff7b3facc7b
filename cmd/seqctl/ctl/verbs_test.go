package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// gone is a node at whose address nothing listens.
var gone = seq.Node{Name: "gone", Addr: "127.0.0.1:1", Session: 2, Weight: 100}

func statusOf(t *testing.T, n *node) (r survey.Status, err error) {
	t.Helper()
	out, err := call(t, "status", "--addr", n.addr, "-o", "json")
	if jsonErr := json.Unmarshal([]byte(out), &r); jsonErr != nil {
		t.Fatalf("status printed %q: %v", out, jsonErr)
	}
	return r, err
}

func TestStatusSaysHowWellTheClusterIs(t *testing.T) {
	tests := []struct {
		name    string
		others  []seq.Node
		change  func(n *node)
		want    survey.Health
		problem string // part of the first
	}{
		{"all there", nil, func(*node) {}, survey.Healthy, ""},
		{"a store away", nil, func(n *node) { n.status.Stores[0].Reachable = false }, survey.Degraded, "store s1 is not reachable"},
		{"a store that does not vote", nil, func(n *node) { n.status.Stores[1].State = "grace" }, survey.Degraded, "s2:1 does not vote: grace"},
		{"two stores away", nil, func(n *node) { n.status.Stores[0].Reachable, n.status.Stores[1].Reachable = false, false }, survey.Failed, "no quorum"},
		{"sections without an owner", nil, func(n *node) { n.status.SectionsUnowned = 3 }, survey.Failed, "3 of 8 sections"},
		{"an allocator that does not answer", []seq.Node{gone}, func(*node) {}, survey.Degraded, "alloc gone does not answer"},
		{"an allocator that is not ready", nil, func(n *node) { n.status.Ready, n.status.Reason = false, "lease ended" }, survey.Degraded, "lease ended"},
		{"a dead router", nil, func(n *node) {
			n.status.Members = append(n.status.Members, &pb.MemberStatus{Name: "r", Role: "router", State: "dead"})
		}, survey.Degraded, "router r is dead"},
		{"a frozen arbiter", nil, func(n *node) { n.status.Frozen = "mass suspicion" }, survey.Degraded, "mass suspicion"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := serve(t, test.others...)
			test.change(n)
			r, err := statusOf(t, n)
			if r.Health != test.want {
				t.Errorf("got %s with %q, want %s", r.Health, r.Problems, test.want)
			}
			if test.problem != "" && (len(r.Problems) == 0 || !strings.Contains(r.Problems[0], test.problem)) {
				t.Errorf("problems %q, want first one with %q", r.Problems, test.problem)
			}
			if got, want := errors.Is(err, errUnhealthy), test.want == survey.Failed; got != want {
				t.Errorf("error %v, want an exit with failure: %v", err, want)
			}
		})
	}
}

func TestStatusAsATableBeginsWithTheHealth(t *testing.T) {
	out, err := call(t, "status", "--addr", serve(t).addr)
	if err != nil || !strings.HasPrefix(out, "HEALTHY\ncluster test, 8 sections") {
		t.Errorf("got %v and %q", err, out)
	}
}

func TestChangesReachAnAllocatorThatAnswers(t *testing.T) {
	tests := []struct {
		line string
		want any
		json change
	}{
		{"undrain b", &pb.DrainRequest{Node: "b", Undo: true}, change{"undrain", "b", 8, 4, "asked"}},
		{"move 5 b", &pb.MoveRequest{Section: 5, Node: "b"}, change{"move", "5", 8, 1, "asked"}},
		{"move 5 --unpin", &pb.MoveRequest{Section: 5}, change{"move", "5", 8, 1, "asked"}},
		{"rebalance", &pb.RebalanceRequest{}, change{"rebalance", "", 9, 0, "asked"}},
	}
	n := serve(t, gone)
	for _, test := range tests {
		n.changes = nil
		out, err := call(t, append(strings.Fields(test.line), "--addr", n.addr, "-o", "json")...)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
			continue
		}
		if diff := cmp.Diff([]any{test.want}, n.changes, protocmp.Transform()); diff != "" {
			t.Errorf("%s: asked for (-want +got)\n%s", test.line, diff)
		}
		var got change
		if err := json.Unmarshal([]byte(out), &got); err != nil || got != test.json {
			t.Errorf("%s: printed %q (%v), want %+v", test.line, out, err, test.json)
		}
	}
}

func TestADrainSaysThatItWasAskedForAndNotThatItIsDone(t *testing.T) {
	n := serve(t, gone)
	out, err := call(t, "drain", "b", "--addr", n.addr, "-o", "json")
	var got drainResult
	if err := errors.Join(err, json.Unmarshal([]byte(out), &got)); err != nil {
		t.Fatal(err)
	}
	if want := (drainResult{"drain", "b", 8, 4, "asked"}); got != want {
		t.Errorf("printed %+v, want %+v", got, want)
	}
	if diff := cmp.Diff([]any{&pb.DrainRequest{Node: "b"}}, n.changes, protocmp.Transform()); diff != "" {
		t.Errorf("asked for (-want +got)\n%s", diff)
	}
	if out, err = call(t, "drain", "b", "--addr", n.addr); err != nil || !strings.Contains(out, "asked") {
		t.Errorf("got %v and %q", err, out)
	}
}

func TestADrainThatWaitsEndsOnlyWhenEverySectionIsOwnedElsewhere(t *testing.T) {
	b := &pb.MemberStatus{Name: "b", Role: "alloc", State: "alive", Session: 2, LeaseLeftMs: 900, Drained: true}
	undrained := seq.Node{Name: "b", Addr: gone.Addr, Session: 2, Weight: 100}
	drained := undrained
	drained.Drained = true
	tests := []struct {
		name   string
		node   seq.Node
		change func(s *pb.StatusReply, b *pb.MemberStatus)
		want   string // part of the text of what is left; empty if nothing is
		err    error
	}{
		{"all moved", drained, func(*pb.StatusReply, *pb.MemberStatus) {}, "", nil},
		{"the stores still know it as owner", drained, func(_ *pb.StatusReply, b *pb.MemberStatus) { b.SectionsOwned = 3 }, "3 sections to go", errStillDraining},
		{"the table still wants some there", drained, func(_ *pb.StatusReply, b *pb.MemberStatus) { b.SectionsDesired = 2 }, "2 sections to go", errStillDraining},
		{"some are on their way", drained, func(s *pb.StatusReply, _ *pb.MemberStatus) { s.SectionsMoving = 5 }, "5 sections are on their way", errStillDraining},
		{"nobody has some", drained, func(s *pb.StatusReply, _ *pb.MemberStatus) { s.SectionsUnowned = 4 }, "4 sections of the cluster have no owner", errStillDraining},
		{"an old table", drained, func(s *pb.StatusReply, _ *pb.MemberStatus) { s.RouteVersion = 7 }, "has not been read yet", errStillDraining},
		{"the stores do not answer", drained, func(s *pb.StatusReply, b *pb.MemberStatus) { s.Members, b.LeaseLeftMs = []*pb.MemberStatus{b}, -1 }, "could not be read", errStillDraining},
		{"undrained meanwhile", undrained, func(*pb.StatusReply, *pb.MemberStatus) {}, "", errUndrained},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, m := serve(t, test.node), proto.CloneOf(b)
			n.status.RouteVersion, n.routes.Routes.Version = 8, 8
			n.status.Members = append(n.status.Members, m)
			test.change(n.status, m)
			out, progress, err := waiting(t, "drain", "b", "--addr", n.addr)
			if !errors.Is(err, test.err) || test.err == nil && err != nil {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if test.err != nil {
				if out.Len() > 0 || !strings.Contains(err.Error(), test.want) || !strings.Contains(progress.String(), test.want) {
					t.Errorf("got %v, printed %q and told %q, want %q in the error and told", err, out.String(), progress.String(), test.want)
				}
				return
			}
			var got drainResult
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.State != "drained" || got.ToMove != 0 {
				t.Errorf("printed %q (%v), want drained", out.String(), err)
			}
		})
	}
}

// waiting has a command wait for a moment, or for longer if that was too short on a busy machine to
// be told anything.
func waiting(t *testing.T, args ...string) (out, progress *bytes.Buffer, err error) {
	t.Helper()
	for moment := 600 * time.Millisecond; ; moment *= 3 {
		out, progress = &bytes.Buffer{}, &bytes.Buffer{}
		err = Execute(t.Context(), Root(), append(args, "--wait", "--timeout", moment.String(), "-o", "json"), out, progress)
		if early := err != nil && (errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "nothing is known of it yet")); !early || moment > time.Minute {
			return out, progress, err
		}
	}
}

func TestAChangeThatWaitsEndsWhenEverySectionIsWhereItIsToBe(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *pb.StatusReply)
		want   string // part of the text of what is left; empty if nothing is
	}{
		{"all there", func(*pb.StatusReply) {}, ""},
		{"some are not", func(s *pb.StatusReply) { s.Members[1].SectionsDesired = 5 }, "a has 8 sections of 5"},
		{"some are on their way", func(s *pb.StatusReply) { s.SectionsMoving = 2 }, "2 sections are on their way"},
		{"nobody has some", func(s *pb.StatusReply) { s.SectionsUnowned = 1 }, "1 sections of the cluster have no owner"},
		{"an old table", func(s *pb.StatusReply) { s.RouteVersion = 7 }, "has not been read yet"},
		{"the stores do not answer", func(s *pb.StatusReply) { s.Members[1].LeaseLeftMs = -1 }, "could not be read"},
	}
	for _, test := range tests {
		for _, line := range []string{"undrain a", "move 3 a", "rebalance"} {
			t.Run(test.name+", "+line, func(t *testing.T) {
				t.Parallel()
				n := serve(t)
				n.status.RouteVersion, n.status.Members[1].SectionsDesired = 9, 8
				test.change(n.status)
				out, progress, err := waiting(t, append(strings.Fields(line), "--addr", n.addr)...)
				if test.want != "" {
					if !errors.Is(err, errNotSettled) || !strings.Contains(err.Error(), test.want) || !strings.Contains(progress.String(), test.want) || out.Len() > 0 {
						t.Errorf("got %v, printed %q and told %q, want %q", err, out.String(), progress.String(), test.want)
					}
					return
				}
				var got change
				if err := errors.Join(err, json.Unmarshal(out.Bytes(), &got)); err != nil || got.State != "done" {
					t.Errorf("printed %q (%v), want done", out.String(), err)
				}
			})
		}
	}
}

func TestSectionsOnTheirWayAreANoteAndNoFailure(t *testing.T) {
	n := serve(t)
	n.status.SectionsMoving = 5
	r, err := statusOf(t, n)
	if err != nil || r.Health != survey.Healthy || r.Moving != 5 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "5 of 8 sections are being handed over") {
		t.Errorf("got %v, %s, %d moving and notes %q", err, r.Health, r.Moving, r.Notes)
	}
}

func TestARefusedChangeKeepsItsName(t *testing.T) {
	_, err := call(t, "drain", "nobody", "--addr", serve(t).addr)
	if !errors.Is(err, seq.ErrUnknownNode) || !strings.HasPrefix(err.Error(), "drain: ") {
		t.Errorf("got %v, want ErrUnknownNode of drain", err)
	}
}

func TestARouteNamesOwnerAndStandbys(t *testing.T) {
	n := serve(t, gone)
	space := seq.Space{Name: seq.DefaultSpace, Sections: 8}
	for uid := range seq.UID(1000) {
		if id := space.SectionOf(uid); id >= 4 {
			out, err := call(t, "route", fmt.Sprint(uint64(uid)), "--addr", n.addr, "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			var got survey.Place
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			want := survey.Place{Space: "user", CounterID: survey.CounterOf(uid), Section: uint32(id), Owner: "gone", Addr: gone.Addr, Standbys: []string{"a"}, Zones: []string{""}, Version: 7}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			return
		}
	}
	t.Fatal("no uid falls on the sections of the second node")
}

func TestTablesShowWhatTheAllocatorTold(t *testing.T) {
	n := serve(t)
	n.leases = []*pb.LeaseInfo{
		{Section: 3, Node: "a", Session: 1, Round: 2, Max: 10_000, LeaseLeftMs: 700, Desired: "a", Standbys: []string{"b", "c"}},
		{Section: 4, Node: "b", LeaseLeftMs: -1, Desired: "a"},
	}
	n.events = []*pb.Event{{Id: 1, UnixMs: 1000, Node: "a", Kind: "table", Subject: "8 sections", Reason: "first placement"}}
	tests := []struct {
		line string
		want []string
		none string
	}{
		{"leases", []string{"10000", "700ms", "b c"}, ""},
		{"leases 3 4 --node a", []string{"section", "10000"}, "alloc-b"},
		{"events --limit 5", []string{"first placement", "8 sections"}, ""},
		{"members", []string{"900ms", "store", "0000000000000001"}, ""},
		{"route", []string{"standby of", "0000000000000001"}, ""},
	}
	for _, test := range tests {
		out, err := call(t, append(strings.Fields(test.line), "--addr", n.addr)...)
		if err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		for _, want := range test.want {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(strings.TrimSpace(want))) {
				t.Errorf("%s: printed\n%s\nwithout %q", test.line, out, want)
			}
		}
		if test.none != "" && strings.Contains(out, test.none) {
			t.Errorf("%s: printed\n%s\nwith %q", test.line, out, test.none)
		}
	}
}
