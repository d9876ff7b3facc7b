package router_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

// gauge is the value of a metric without labels.
func gauge(t *testing.T, r *router.Router, name string) float64 {
	t.Helper()
	families, err := telemetry.NewRegistry("router", r).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waits.AtMost(t, patience)); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func TestLimitsChangeWhileTheRouterRuns(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs(), AttemptTimeout: patience, Timeout: 4 * patience})
	ctx, c := bounded(t), sequenceOf(t, r.Addr())
	one := &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 1}, Count: 1}
	if _, err := c.Next(ctx, one); err != nil {
		t.Fatal(err)
	}
	post := func() int {
		return fetch(t, ctx, http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", `{"uid":1}`+strings.Repeat(" ", 2<<10))
	}
	if code := post(); code != http.StatusOK {
		t.Errorf("a body of 2 KiB: got %d", code)
	}
	if err := r.SetLimits(router.Config{MaxInWork: gate.MinInWork, HTTPMaxBody: 1 << 10}); err != nil {
		t.Fatal(err)
	}
	if code := post(); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 2 KiB with a limit of one: got %d, want %d", code, http.StatusRequestEntityTooLarge)
	}
	for _, bad := range []router.Config{{MaxInWork: 1}, {HTTPMaxBody: -1}, {RESPMaxConns: -1}, {RESPMaxPipeline: -1}} {
		if err := r.SetLimits(bad); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%+v: got %v, want %v", bad, err, seq.ErrBadArgument)
		}
	}
	if got := gauge(t, r, "seq_admission_limit_keys"); got != gate.MinInWork {
		t.Errorf("after limits that were refused, %v keys may be in work, want %d", got, gate.MinInWork)
	}
	// A call leaves just after its answer.
	until(t, "all have left", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == 0 })
	cluster.Nodes[0].Hang()
	defer cluster.Nodes[0].Resume()
	wait, cancel := context.WithCancel(ctx)
	all := make(chan error, 1)
	go func() {
		_, err := c.BatchNext(wait, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}}})
		all <- err
	}()
	defer func() { <-all }()
	defer cancel()
	until(t, "the batch is in work", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == gate.MinInWork })
	if _, err := c.Next(ctx, one); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("with no room: got %v, want %v", err, seq.ErrOverloaded)
	}
	if got := gauge(t, r, "seq_admission_refused_total"); got != 1 {
		t.Errorf("%v refused, want 1", got)
	}
	if err := r.SetLimits(router.Config{}); err != nil {
		t.Fatal(err)
	}
	cluster.Nodes[0].Resume()
	if _, err := c.Next(ctx, one); err != nil {
		t.Errorf("with the limit of before: %v", err)
	}
}

func TestTheLargestBatchFitsIntoTheLeastLimit(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs(), MaxInWork: gate.MinInWork})
	body := `{"uids":[1` + strings.Repeat(",1", seq.MaxBatch-1) + `]}`
	if code := fetch(t, bounded(t), http.MethodPost, "http://"+r.HTTPAddr()+"/v1/batch", body); code != http.StatusOK {
		t.Errorf("HTTP: got %d", code)
	}
	// A call leaves just after its answer.
	until(t, "all have left", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == 0 })
	if _, err := sequenceOf(t, r.Addr()).BatchNext(bounded(t), &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: make([]uint64, seq.MaxBatch)}}}); err != nil {
		t.Errorf("gRPC: %v", err)
	}
}

func TestARouterIsNotReadyWhileAllAllocatorsAreAway(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs()[:1], UnreadyAfter: time.Second})
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	health := func() healthpb.HealthCheckResponse_ServingStatus {
		t.Helper()
		reply, err := healthpb.NewHealthClient(conn).Check(bounded(t), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return reply.GetStatus()
	}
	readyz := func() int {
		t.Helper()
		return fetch(t, bounded(t), http.MethodGet, "http://"+r.HTTPAddr()+"/readyz", "")
	}
	until(t, "it is ready", func() bool { return r.Ready() == nil && health() == healthpb.HealthCheckResponse_SERVING })
	for _, n := range cluster.Nodes {
		n.Kill()
	}
	until(t, "it is not", func() bool { return r.Ready() != nil })
	if err := r.Ready(); !errors.Is(err, seq.ErrNoRoute) || !strings.Contains(err.Error(), "none of 2 AllocSvr answers") {
		t.Errorf("got %v, want %v and how many were asked", err, seq.ErrNoRoute)
	}
	until(t, "its fronts say so", func() bool {
		return health() == healthpb.HealthCheckResponse_NOT_SERVING && readyz() == http.StatusServiceUnavailable
	})
	cluster.Nodes[1].Restart() // one of them is enough
	until(t, "it is again", func() bool { return r.Ready() == nil })
	until(t, "its fronts say so", func() bool { return health() == healthpb.HealthCheckResponse_SERVING && readyz() == http.StatusOK })
}
