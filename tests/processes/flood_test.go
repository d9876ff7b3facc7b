package processes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// memory reads a figure of a process's memory, in bytes: VmRSS is what it has, VmHWM the
// most that it ever had.
func memory(t *testing.T, pid int, figure string) uint64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("no memory of a process is known here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s of process %d", figure, pid)
	return 0
}

// TestAFloodOfRandomUIDsIsBoundedAndItsMemoryComesBack takes from as many random UIDs as
// would fill eight times the budget, over more than one fold.
func TestAFloodOfRandomUIDsIsBoundedAndItsMemoryComesBack(t *testing.T) {
	const (
		budget, margin = 16 << 20, 48 << 20
		keys           = 5000
		flood, folds   = 4_000_000, 600_000 // UIDs asked for, blocks folded
	)
	c := start(t, func(cfg *localcluster.Config) {
		cfg.Allocs = 1
		cfg.Args = map[localcluster.Role][]string{localcluster.RoleAlloc: {"--uid-memory", strconv.Itoa(budget)}}
	})
	node := c.Processes(localcluster.RoleAlloc)[0]
	conn, err := rpc.Dial(node.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, admin, ctx := pb.NewSequenceClient(conn), pb.NewAdminClient(conn), harness.Within(t)
	status := func() *pb.StatusReply {
		got, err := admin.Status(ctx, &pb.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	take := func(uids []uint64) *pb.BatchResult {
		got, err := client.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetResults()[0]
	}
	pid := node.ServingPid()
	idle := memory(t, pid, "VmRSS")
	known := []uint64{1, 2, 3, 1 << 20, 1 << 30}
	var first []uint64 // of the flood
	for asked, rounds := 0, uint64(1); asked < flood || status().GetFoldedBlocks() < folds; asked, rounds = asked+keys, rounds+1 {
		uids := make([]uint64, keys)
		for i := range uids {
			uids[i] = rand.Uint64()
		}
		if got := take(uids); first == nil && len(got.GetErrors()) == 0 {
			first = uids
		}
		got := take(known)
		for i, uid := range known {
			if len(got.GetErrors()) > 0 || got.GetFirst()[i] != rounds {
				t.Fatalf("uid %d, in use, got %d, %v, want %d", uid, got.GetFirst()[i], got.GetErrors(), rounds)
			}
		}
	}
	s := status()
	t.Logf("%d blocks folded, %d UIDs refused; idle %d MiB, at most %d MiB", s.GetFoldedBlocks(), s.GetUidsRefused(), idle>>20, memory(t, pid, "VmHWM")>>20)
	if most := memory(t, pid, "VmHWM"); most > idle+2*budget+margin {
		t.Errorf("the allocator took up to %d bytes, and %d when idle: want at most twice its budget of %d and %d more", most, idle, budget, margin)
	}
	harness.Until(t, "less is used than folding begins with", func() bool { return status().GetUidMemoryBytes() < budget*6/10 })
	harness.Until(t, "the memory comes back", func() bool { return memory(t, pid, "VmRSS") < idle+budget+margin/2 })
	harness.Until(t, "a folded UID has a higher number", func() bool {
		got := take(first[:1])
		return len(got.GetErrors()) == 0 && got.GetFirst()[0] > 1
	})
	if now, err := client.Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: known[:1]}}}); err != nil || now.GetResults()[0].GetUpperBound()[0] {
		t.Errorf("a UID in use is not exact: %v, %v", now, err)
	}
}
