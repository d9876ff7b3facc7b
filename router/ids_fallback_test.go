package router_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestARouterMakesIDsItselfWhileNoAllocSvrAnswers(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs(), Timeout: 4 * patience, AttemptTimeout: patience,
		IDsFallback: []string{"default", "orders"}, IDsFallbackAfter: 100 * time.Millisecond})
	until(t, "two windows", func() bool { return gauge(t, r, "seq_router_fallback_window_remaining_seconds") > 60 })
	for _, n := range cluster.Nodes {
		n.Kill()
	}
	seen := map[uint64]bool{}
	add := func(what string, ids []uint64, want int) {
		t.Helper()
		if len(ids) != want {
			t.Errorf("%s: got %d IDs, want %d", what, len(ids), want)
		}
		for _, id := range ids {
			if seen[id] {
				t.Errorf("%s: %d twice", what, id)
			}
			seen[id] = true
		}
	}
	c := pb.NewSnowflakeClient(connOf(t, r.Addr()))
	for name, req := range map[string]*pb.SnowflakeGenerateRequest{
		"one": {}, "one by name": {Namespace: "default"}, "many": {Namespace: "orders", Count: 5000}, "for an agent": {Count: 7, Agent: "mailer"},
		"with texts": {Count: 3, Encoding: "base58"},
	} {
		got, err := c.Generate(bounded(t), req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if req.Encoding != "" && len(got.GetTexts()) != 3 {
			t.Errorf("%s: got %v", name, got)
		}
		if req.Namespace != "orders" {
			add(name, got.GetIds(), max(1, int(req.Count)))
		} else if len(got.GetIds()) != 5000 {
			t.Errorf("%s: got %d", name, len(got.GetIds()))
		}
	}
	for _, path := range []string{"/v1/snowflake/generate", "/api/snowflake/v1/gen/"} {
		if code, text := post(t, r, path, `{"namespace":"default"}`); code != http.StatusOK || !strings.Contains(text, "id") {
			t.Errorf("%s: got %d, %s", path, code, text)
		}
	}
	if n := gauge(t, r, "seq_router_fallback_ids_total"); n < 5010 {
		t.Errorf("counted %v", n)
	}
	for _, n := range cluster.Nodes {
		n.Restart()
	}
	until(t, "the AllocSvr to be asked again", func() bool {
		was := cluster.IDsOf("back")
		_, err := c.Generate(bounded(t), &pb.SnowflakeGenerateRequest{Agent: "back"})
		return err == nil && cluster.IDsOf("back") > was
	})
}
