package router_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// inSet finds a UID whose section is even or odd.
func inSet(s *clienttest.Sets, odd int) seq.UID {
	space := s.All[0].Mapping.Spaces[0]
	for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
		if int(space.SectionOf(uid))%2 == odd {
			return uid
		}
	}
}

// get reads a path of the HTTP front.
func get(t *testing.T, r *router.Router, path string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), http.MethodGet, "http://"+r.HTTPAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answer(t, req)
}

func TestARouterServesAllSetsAndADeadOneDoesNotMakeItUnready(t *testing.T) {
	for dead := range 2 {
		s := clienttest.StartSets(t, []string{"main", "b"}, 2, seq.Space{Name: "user", Sections: 4})
		s.Move(0, 1, 1, 3)
		s.Publish()
		s.All[dead].Kill()
		r := start(t, router.Config{Allocs: append(s.All[1].Addrs(), s.All[0].Addrs()...), Timeout: 4 * patience, AttemptTimeout: patience})
		until(t, "the router to be ready", func() bool { return r.Ready() == nil })
		code, text := get(t, r, "/readyz")
		if name := []string{"main", "b"}[dead]; code != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`{"name":%q,"routes_version":0,"away":"Set %s: `, name, name)) {
			t.Errorf("readyz: %d, %s", code, text)
		}
		behind, err := client.New(bounded(t), client.Config{Addrs: []string{r.Addr()}, Indirect: true, Timeout: 4 * patience, AttemptTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		direct, err := client.New(bounded(t), client.Config{Addrs: []string{r.Addr()}, Timeout: 4 * patience, AttemptTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]*client.Client{"by routers": behind, "by the router's map": direct} {
			if _, err := c.Next(bounded(t), client.Key{UID: inSet(s, 1-dead)}); err != nil {
				t.Errorf("%s: the living Set: %v", name, err)
			}
			_, err := c.Next(bounded(t), client.Key{UID: inSet(s, dead)})
			if !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Set ") {
				t.Errorf("%s: the dead Set: %v", name, err)
			}
		}
		code, text = post(t, r, "/v1/batch", fmt.Sprintf(`{"uids":[%d,%d]}`, inSet(s, dead), inSet(s, 1-dead)))
		if code != http.StatusOK || !strings.Contains(text, `"first":[0,3]`) || !strings.Contains(text, `"code":"NO_QUORUM"`) {
			t.Errorf("HTTP: %d, %s", code, text)
		}
		if r.Ready() != nil {
			t.Errorf("not ready: %v", r.Ready())
		}
		if away := setsAway(t, r); away["b"] != float64(dead) || away["main"] != float64(1-dead) {
			t.Errorf("metrics show as away: %v", away)
		}
		for _, n := range s.All[dead].Nodes {
			n.Restart()
		}
		until(t, "the Set to be back", func() bool {
			_, err := behind.Next(bounded(t), client.Key{UID: inSet(s, dead)})
			_, err2 := direct.Next(bounded(t), client.Key{UID: inSet(s, dead)})
			return err == nil && err2 == nil
		})
		_, _ = behind.Close(), direct.Close()
	}
}

// setsAway is the metric of that name, by Set.
func setsAway(t *testing.T, r *router.Router) map[string]float64 {
	t.Helper()
	shown := prometheus.NewPedanticRegistry()
	shown.MustRegister(r)
	all, err := shown.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range all {
		if strings.HasSuffix(family.GetName(), "router_set_away") {
			for _, m := range family.GetMetric() {
				out[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestARoutersRoutesAreTheRootsWithTheMap(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b"}, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: s.All[1].Addrs()})
	until(t, "the router to be ready", func() bool { return r.Ready() == nil })
	reply, err := sequenceOf(t, r.Addr()).Routes(bounded(t), &pb.RoutesRequest{})
	if err != nil || reply.GetClusterId() != s.All[0].ID || reply.GetSet() != "main" || reply.GetRoutes().GetNodes()[0].GetAddr() != s.All[0].Nodes[0].Addr() || len(reply.GetSets().GetSets()) != 2 {
		t.Errorf("got %v, %v", reply, err)
	}
	reply, err = sequenceOf(t, r.Addr()).Routes(bounded(t), &pb.RoutesRequest{RouteVersion: reply.GetRouteVersion(), SetsVersion: reply.GetSets().GetVersion()})
	if err != nil || reply.GetRoutes() != nil || reply.GetSets() != nil {
		t.Errorf("to a caller who has both: %v, %v", reply, err)
	}
}

// A message on a stream has keys of a Set that answers and of one that hangs: the former are answered at
// once, and both kinds of keys of all spaces at the end, each in its place.
func TestKeysOfASetDoNotWaitForThoseOfAnother(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b"}, 1, seq.Space{Name: "user", Sections: 4})
	s.Move(0, 1, 1, 3)
	s.Publish()
	r := start(t, router.Config{Allocs: s.All[0].Addrs(), Timeout: 4 * patience, AttemptTimeout: patience})
	until(t, "the router to be ready", func() bool { return r.Ready() == nil })
	until(t, "the router to know both Sets", func() bool { return len(setsAway(t, r)) == 2 })
	stream, err := sequenceOf(t, r.Addr()).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for hung := range 2 {
		s.All[hung].Nodes[0].Hang()
		here, there := uint64(inSet(s, 1-hung)), uint64(inSet(s, hung))
		uids := []uint64{there, here, there, here}
		counts := []uint32{1, 1, 3, 2}
		request := &pb.StreamRequest{Id: uint64(hung), Parts: true, TimeoutMs: 20_000,
			Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: []*pb.Batch{{Space: "user", Uids: uids, Counts: counts}}}}}
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
		early, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got := early.GetNext().GetResults()[0]
		if !early.More || early.Id != uint64(hung) || got.First[0] != 0 || got.First[2] != 0 || got.First[1] == 0 || got.First[3] != got.First[1]+1 || got.Last[3] != got.First[3]+1 || len(got.Errors) > 0 {
			t.Fatalf("Set %d hangs: got %v", hung, early)
		}
		s.All[hung].Nodes[0].Resume()
		late, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		last := late.GetNext().GetResults()[0]
		if late.More || late.Id != uint64(hung) || last.First[1] != got.First[1] || last.Last[3] != got.Last[3] || last.First[0] == 0 || last.First[2] != last.First[0]+1 || last.Last[2] != last.First[2]+2 || len(last.Errors) > 0 {
			t.Errorf("at the end: got %v after %v", late, early)
		}
	}
}
