package processes

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// The times are for a busy machine: no test asserts how long anything takes.
const (
	// lease is so long that no process loses one for want of a processor: what is left
	// to see is what the test did.
	lease = 6 * time.Second
	// sections are enough for every node to have many, and few enough to be acquired
	// in one short message.
	sections = 256
	poll     = 10 * time.Millisecond
	// attempt is the time of one try in tests that want every number. A try that is repeated because
	// processors are busy skips numbers.
	attempt = 20 * time.Second
)

func TestMain(m *testing.M) { harness.Main(m) }

// start runs a cluster of 3 stores, 3 allocators and a router that serves.
func start(t *testing.T, change func(*localcluster.Config)) *localcluster.Cluster {
	t.Helper()
	return harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Lease, cfg.Sections = lease, sections
		if change != nil {
			change(cfg)
		}
	})
}

// taken returns how many numbers the allocators have handed out since they started.
func taken(t *testing.T, c *localcluster.Cluster) uint64 {
	t.Helper()
	var sum uint64
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		conn, err := rpc.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		status, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{})
		cancel()
		_ = conn.Close()
		if err == nil { // else asked again by the next poll
			sum += status.GetNumbers()
		}
	}
	return sum
}

// run runs one of the binaries to its end.
func run(t *testing.T, name string, args ...string) harness.Ended {
	t.Helper()
	return harness.Run(t, command(harness.Within(t), t, name, args...))
}

func command(ctx context.Context, t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return harness.Command(ctx, t, nil, name, args...)
}

// commandBy is command of a binary of another folder.
func commandBy(ctx context.Context, t *testing.T, bin, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(ctx, t, name, args...)
	cmd.Path = filepath.Join(bin, name)
	return cmd
}
