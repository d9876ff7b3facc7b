package survey

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAClockThatIsOffIsNamed(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		time.Minute: "", -time.Minute: "",
		61 * time.Second:  "clock of alloc b is 1m1s ahead of those that the stores go by",
		-90 * time.Minute: "clock of alloc b is 1h30m0s behind those that the stores go by",
	} {
		got, off := clockTrouble("b", &pb.StatusReply{ClockAheadMs: proto.Int64(ahead.Milliseconds())})
		if off != (want != "") || got.what != want || got.breaks {
			t.Errorf("%v: got %q", ahead, got.what)
		}
	}
	if _, off := clockTrouble("b", &pb.StatusReply{}); off {
		t.Errorf("a node of a build of before is off")
	}
	s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{Nodes: []seq.Node{{Name: "b"}}}}}
	s.Replies = map[string]*pb.StatusReply{"b": {Ready: true, ClockAheadMs: proto.Int64(time.Hour.Milliseconds())}}
	if all := s.nodeTroubles(); len(all) != 1 || all[0].cause != clockOff {
		t.Errorf("got %+v", all)
	}
}

func TestAStoreWhoseClockIsOffIsNamed(t *testing.T) {
	store := func(name string, ahead time.Duration) *pb.StoreStatus {
		return &pb.StoreStatus{Name: name, Reachable: true, State: "voting", ClockAheadMs: proto.Int64(ahead.Milliseconds())}
	}
	old := &pb.StoreStatus{Name: "old", Reachable: true, State: "voting"}
	for name, row := range map[string]struct {
		stores []*pb.StoreStatus
		want   string
	}{
		"all differ from the node alike": {[]*pb.StoreStatus{store("a", time.Hour), store("b", time.Hour), store("c", time.Hour+time.Minute)}, ""},
		"ahead":                          {[]*pb.StoreStatus{store("a", 20*time.Minute), store("b", time.Second), store("c", 0)}, "clock of store a is 19m59s ahead of the other stores' clocks"},
		"behind":                         {[]*pb.StoreStatus{store("a", 0), store("b", 0), store("c", -48*time.Hour)}, "clock of store c is 48h0m0s behind the other stores' clocks"},
		"two tell no median":             {[]*pb.StoreStatus{store("a", time.Hour), store("b", 0), old}, ""},
	} {
		s := &Survey{Cluster: &Cluster{Table: &seq.RouteTable{}}}
		var want []trouble
		if row.want != "" {
			want = []trouble{{cause: clockOff, what: row.want}}
		}
		got := s.storeClockTroubles(row.stores)
		if !slices.EqualFunc(got, want, func(a, b trouble) bool { return a.cause == b.cause && a.what == b.what }) {
			t.Errorf("%s: got %+v, want %q", name, got, row.want)
		}
	}
}

func TestWorkerIDsThatAreHeldInTheFutureAreNamed(t *testing.T) {
	until := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	w := func(id uint64, session uint64, ahead time.Duration) *pb.SnowflakeWorker {
		return &pb.SnowflakeWorker{WorkerId: id, Session: session, Node: map[bool]string{true: "b"}[session != 0], AheadMs: ahead.Milliseconds(), MarkUnixMs: uint64(until.Add(ahead).UnixMilli())}
	}
	for _, row := range []struct {
		workers []*pb.SnowflakeWorker
		want    string
	}{
		{[]*pb.SnowflakeWorker{w(1, 7, 3*time.Second), w(2, 0, 50*time.Minute), w(3, 7, 10*time.Minute)}, ""},
		{[]*pb.SnowflakeWorker{w(1, 7, 30*time.Minute), w(2, 0, 50*time.Minute)}, "1 worker ids of s are held in the future, worker 1 by b until 2027-01-02T03:34:05Z"},
		{[]*pb.SnowflakeWorker{w(1, 7, 30*time.Minute), w(2, 0, 400*24*time.Hour)}, "2 worker ids of s are held in the future, worker 2 until 2028-02-06T03:04:05Z"},
	} {
		got, found := aheadTrouble(&pb.SnowflakeWorkersReply{Namespace: "s", Workers: row.workers})
		if found != (row.want != "") || got.what != row.want {
			t.Errorf("got %q, want %q", got.what, row.want)
		}
	}
}
