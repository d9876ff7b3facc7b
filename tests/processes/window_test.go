package processes

import (
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// Stores that are dead, and stores that are silent: the allocators learn of that in different
// ways.
func TestIDsGoOnByWayOfARouterForAsLongAsTheWindowWithoutAQuorum(t *testing.T) {
	const window = "2m" // of which a minute at least is left at any time
	c := harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Allocs = sections, 2
		cfg.Args = map[localcluster.Role][]string{localcluster.RoleAlloc: {"--worker-window", window}}
	})
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, Indirect: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	once := func() {
		t.Helper()
		if err := ask(t, "http://"+c.HTTP()+"/v1/snowflake/generate", `{"count":3}`); err != nil {
			t.Errorf("HTTP: %v", err)
		}
		if _, err := sdk.Generate(harness.Within(t), "", 1); err != nil {
			t.Errorf("gRPC: %v", err)
		}
	}
	once()
	for range 3 { // each gets the worker id that the one before gave back
		if err := seqctl(t, "snowflake", "gen", "--local", "--count", "5", "--addr", c.GRPC()); err != nil {
			t.Error(err)
		}
	}
	stores := c.Processes(localcluster.RoleStore)
	for _, end := range []func(*localcluster.Process) error{(*localcluster.Process).Pause, (*localcluster.Process).Kill} {
		for _, s := range stores[1:] {
			if err := end(s); err != nil {
				t.Fatal(err)
			}
		}
		untilQuorum(t, c, healthpb.HealthCheckResponse_NOT_SERVING)
		calls := 0
		for begun := time.Now(); time.Since(begun) < 8*time.Second && !t.Failed(); calls++ { // longer than any lease and patience
			once()
		}
		if calls < 10 {
			t.Errorf("%d calls in 8 s", calls)
		}
		for _, s := range stores[1:] {
			if s.Running() {
				_ = s.Resume()
			}
		}
	}
}
