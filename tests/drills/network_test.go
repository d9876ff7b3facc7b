package drills

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// namespaces lists the network namespaces of a drill by its process id. It returns none if ip is missing.
func namespaces(pid int) (names []string) {
	out, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, fmt.Sprintf("seqdrill-%d-", pid)) {
			names = append(names, strings.TrimSpace(line))
		}
	}
	return names
}

func TestAnAllocThatIsCutOffIsTakenOver(t *testing.T) {
	run(t, "partition-alloc").wants(t, "lease ended", "taken over", "first answer", "mended")
}

func TestAStoreThatIsCutOffIsNotMissed(t *testing.T) {
	run(t, "partition-store").wants(t, "mended")
}

func TestAnAllocThatOnlySendsOrOnlyHearsIsTakenOver(t *testing.T) {
	r := run(t, "one-way", "--pause", "2s")
	if faults, mended := r.count("fault"), r.count("mended"); faults != 2 || mended != 2 {
		t.Errorf("%d cuts and %d mends, want 2 and 2: %v", faults, mended, r.Timeline)
	}
}

func TestAnInterruptedDrillLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	cmd := harness.Command(harness.Within(t), t, []string{"TMPDIR=" + temp}, "seqctl", "drill", "partition-alloc", "--warm", "10m")
	drill := harness.Serve(t, "seqctl drill", cmd)
	harness.Until(t, "the cluster is being started", func() bool {
		if log := drill.Log(t); strings.Contains(log, lab.ErrNoNamespaces.Error()) {
			t.Skip(strings.TrimSpace(log))
		}
		dirs, _ := filepath.Glob(filepath.Join(temp, "*", "cluster", "logs", "alloc-1.log"))
		return len(dirs) > 0
	})
	if len(namespaces(cmd.Process.Pid)) == 0 {
		t.Error("no namespaces while the drill runs")
	}
	if err := drill.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	drill.Wait(t)
	nothingLeft(t, temp, cmd.Process.Pid)
}
