package processes

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/harness"
)

func TestScratchFair(t *testing.T) {
	for _, g := range []struct {
		name, target string
		args         []string
	}{
		{"router 4096", "router", []string{"--callers", "4096"}},
		{"router 256x10000 x", "router", []string{"--target", "batch", "--batch", "10000", "--callers", "256"}},
		//{"alloc 4096", "next", []string{"--callers", "4096"}},
		//{"alloc 256x10000", "next", []string{"--target", "batch", "--batch", "10000", "--callers", "256"}},
	} {
		t.Run(g.name, func(t *testing.T) {
			role := localcluster.RoleRouter
			if strings.HasPrefix(g.name, "alloc") {
				role = localcluster.RoleAlloc
			}
			c := start(t, func(cfg *localcluster.Config) { withAdmin(cfg, role); cfg.Allocs = 1 })
			p := c.Processes(role)[0]
			served(t, p.Addr)
			polite := func() histogram {
				return histogramOf(t, metricsOf(t, p), "seq_grpc_server_call_seconds", `method="`+pb.Sequence_Next_FullMethodName+`"`)
			}
			_, stop := politely(t, p.Addr)
			first := polite()
			time.Sleep(3 * time.Second)
			alone := polite()
			ctx, cancel := context.WithCancel(t.Context())
			addr := c.GRPC()
			seqctl := harness.Command(ctx, t, nil, "seqctl", append([]string{"bench", "--addr", addr, "-o", "json", "--uids", "100000", "--duration", "5s", "--target", g.target}, g.args...)...)
			cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "19"}, seqctl.Args...)...)
			cmd.Args[3] = seqctl.Path
			cmd.Env, cmd.Dir = seqctl.Env, seqctl.Dir
			done := make(chan string, 1)
			go func() { out, err := cmd.CombinedOutput(); done <- string(out); _ = err }()
			time.Sleep(1 * time.Second)
			mid := polite()
			time.Sleep(3 * time.Second)
			beside := polite()
			out := <-done
			cancel()
			stop()
			for _, l := range strings.Split(out, "\n") {
				if strings.Contains(l, "rate\"") || strings.Contains(l, "failed") || strings.Contains(l, "Rate") {
					t.Log(l)
				}
			}
			a, b := alone.since(first), beside.since(mid)
			t.Logf("%s: alone p50 %v p90 %v p99 %v; beside n=%v p50 %v p90 %v p99 %v", g.name, a.within(.5), a.within(.9), a.within(.99), b[10], b.within(.5), b.within(.9), b.within(.99))
		})
	}
}
