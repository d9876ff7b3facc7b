package router_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// look asks a router's console for a part of a snapshot.
func look(t *testing.T, r *router.Router, part string, into any) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport, Timeout: patience}).Get("http://" + r.ConsoleAddr() + "/api/snapshot?topics=" + part)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %.300s", reply.Status, err, body)
	}
	if err := json.Unmarshal(parts[part], into); err != nil {
		t.Fatalf("%v: %.300s", err, parts[part])
	}
}

// traffic is what the console says of the last second.
type traffic struct {
	Server  string
	Traffic []struct {
		Calls  float64 `json:"calls_per_s"`
		Errors float64 `json:"errors_per_s"`
		P99    float64 `json:"p99_ms"`
	}
}

func TestTheConsoleIsServedBesideTheFrontsAndIsNoCaller(t *testing.T) {
	r := full(t)
	var got traffic
	look(t, r, "status", &got) // the admission has no room for anybody
	if got.Server != "router-full" {
		t.Errorf("shown by %q", got.Server)
	}
	until(t, "the console knows two moments", func() bool {
		look(t, r, "status", &got)
		return len(got.Traffic) > 2
	})
	for _, one := range got.Traffic {
		if one.Calls > 0 || one.Errors > 0 || one.P99 >= 0 {
			t.Errorf("whoever looks counts as a caller: %+v", one)
		}
	}
	if bare := start(t, router.Config{Allocs: []string{"127.0.0.1:1"}}); bare.ConsoleAddr() != "" {
		t.Errorf("a router that was not asked for one has a console at %s", bare.ConsoleAddr())
	}
}

func TestTheConsoleCountsTheCallsOfTheFronts(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs(), ConsoleListen: "127.0.0.1:0"})
	until(t, "it has a table", func() bool { return r.Ready() == nil })
	var got traffic
	look(t, r, "status", &got)
	seen := false
	until(t, "calls by HTTP are shown with their time, and one that was refused", func() bool {
		post(t, r, "/v1/next", `{"uid":7}`)
		post(t, r, "/v1/next", `{"uid":"x"}`)
		look(t, r, "status", &got)
		for _, one := range got.Traffic {
			seen = seen || one.Calls > 0 && one.Errors > 0 && one.P99 >= 0
		}
		return seen
	})
}
