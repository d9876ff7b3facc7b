package survey

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAStatusTellsWhatNodesKeepForReaders(t *testing.T) {
	const most = 1 << 20
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "alloc-1"}, {Name: "alloc-2"}, {Name: "before"}, {Name: "gone"}}}, Mapping: seq.Mapping{}},
		Replies: map[string]*pb.StatusReply{
			"alloc-1": {Ready: true, Reading: &pb.Reading{Tickets: 7, MostTickets: most, Watches: 2, Keys: 40, LatelyMs: 300_000, Opened: 2_000, Expired: 300, Spaces: []*pb.SpaceReading{
				{Space: "news", Keys: 3}, {Space: "inbox", Tickets: 7, OldestMs: 4_000, Expired: 300, Keys: 20}}}},
			"alloc-2": {Ready: true, Reading: &pb.Reading{Tickets: 5, MostTickets: most, LatelyMs: 60_000, Opened: 10, Expired: 9, Spaces: []*pb.SpaceReading{
				{Space: "inbox", Tickets: 5, OldestMs: 9_000, Expired: 6, Keys: 1}}}}, // a few tickets expire anywhere
			"before": {Ready: true},
		}}
	r := s.Judge()
	if diff := cmp.Diff([]Reading{{"inbox", 12, 9_000, 1.1, 21}, {"news", 0, 0, 0, 3}}, r.Reading); diff != "" {
		t.Error(diff)
	}
	if a := r.Allocs[0]; a.Tickets != 7 || a.TicketsExpired != 1 || a.Watches != 2 || a.WatchedKeys != 40 {
		t.Errorf("got %+v", a)
	}
	if notes := s.ticketNotes(); len(notes) != 1 || !strings.Contains(notes[0], "alloc-1: 300 of 2000 tickets expired") || !strings.Contains(strings.Join(r.Notes, "\n"), notes[0]) {
		t.Errorf("got %q", notes)
	}
	s.Replies["alloc-1"].Reading.Opened = 30_000 // 1 %
	if notes := s.ticketNotes(); len(notes) > 0 {
		t.Errorf("got %q", notes)
	}
}

func TestTicketsRunShortAtFourFifths(t *testing.T) {
	for open, want := range map[uint64][2]bool{0: {}, 80: {}, 81: {true, false}, 99: {true, false}, 100: {true, true}, 101: {true, true}} {
		got, short := ticketTrouble("a", &pb.StatusReply{Reading: &pb.Reading{Tickets: open, MostTickets: 100}})
		if short != want[0] || got.breaks != want[1] || short && !strings.Contains(got.what, "of 100 tickets") {
			t.Errorf("%d open: got %v, %+v, want %v", open, short, got, want)
		}
	}
	if _, short := ticketTrouble("before", &pb.StatusReply{}); short {
		t.Error("a build of before is short of tickets")
	}
}
