package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestALostQuorumGoesThroughTheRouterBeforeAnyDeadline(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	r := start(t, router.Config{Allocs: cluster.Addrs(), Timeout: 4 * patience, AttemptTimeout: patience})
	behind, err := client.New(bounded(t), client.Config{Addrs: []string{r.Addr()}, Indirect: true, Timeout: 4 * patience, AttemptTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	missing := fmt.Errorf("%w: missing store-2, store-3", seq.ErrNoQuorum)
	for _, n := range cluster.Nodes {
		n.Refuse(missing)
	}
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "missing store-2, store-3") {
			t.Errorf("%s: got %v, want %v before the deadline", what, err, missing)
		}
	}
	_, err = sequenceOf(t, r.Addr()).Next(bounded(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 1}, Count: 1})
	check("gRPC", err)
	_, err = behind.Next(bounded(t), client.Key{UID: 1})
	check("a client of routers", err)
	_, err = behind.Generate(bounded(t), "", 3)
	check("ids of a client of routers", err)
	code, text := post(t, r, "/v1/next", `{"uid":1}`)
	if code != http.StatusServiceUnavailable || !strings.Contains(text, `"code":"NO_QUORUM"`) || !strings.Contains(text, "missing store-2, store-3") {
		t.Errorf("HTTP: got %d, %s", code, text)
	}
	for _, n := range cluster.Nodes {
		n.Refuse(nil)
	}
	if _, err := behind.Next(bounded(t), client.Key{UID: 1}); err != nil {
		t.Errorf("with the quorum back: %v", err)
	}
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	until(t, "the router to say that there is a quorum", func() bool {
		reply, err := healthpb.NewHealthClient(conn).Check(bounded(t), &healthpb.HealthCheckRequest{Service: rpc.QuorumHealth})
		return err == nil && reply.GetStatus() == healthpb.HealthCheckResponse_SERVING
	})
}

func TestARefusalByPolicyGoesThroughTheRouterAtOnce(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	r := start(t, router.Config{Allocs: cluster.Addrs(), Timeout: 4 * patience, AttemptTimeout: patience})
	cluster.AtOnce(4)
	asked := func() (n int64) {
		for _, node := range cluster.Nodes {
			n += node.Generates.Load()
		}
		return n
	}
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pb.NewSnowflakeClient(conn).Generate(bounded(t), &pb.SnowflakeGenerateRequest{Count: 5}); !errors.Is(err, seq.ErrTickUsedUp) {
		t.Errorf("gRPC: got %v, want %v", err, seq.ErrTickUsedUp)
	}
	if code, text := post(t, r, "/v1/snowflake/generate", `{"count":5}`); code != http.StatusTooManyRequests || !strings.Contains(text, `"code":"TICK_USED_UP"`) {
		t.Errorf("HTTP: got %d, %s, want 429 TICK_USED_UP", code, text)
	}
	if n := asked(); n != 2 {
		t.Errorf("%d attempts for two calls", n)
	}
}

// post sends JSON and gives the answer.
func post(t *testing.T, r *router.Router, path, body string) (code int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, "http://"+r.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return answer(t, req)
}

// answer makes an HTTP request.
func answer(t *testing.T, req *http.Request) (code int, text string) {
	t.Helper()
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	all, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(all)
}
