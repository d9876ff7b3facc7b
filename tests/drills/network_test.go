package drills

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// namespaces lists those of a drill by its process id; none where ip is missing.
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
	build(t)
	temp := t.TempDir()
	cmd := exec.Command(filepath.Join(bin, "seqctl"), "drill", "partition-alloc", "--warm", "10m")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(patience); ; {
		dirs, _ := filepath.Glob(filepath.Join(temp, "*", "cluster", "logs", "alloc-1.log"))
		if len(dirs) > 0 {
			break // the cluster is being started, or runs already
		}
		select {
		case <-ended:
			if strings.Contains(log.String(), noNamespaces) {
				t.Skip(strings.TrimSpace(log.String()))
			}
			t.Fatalf("ended by itself: %s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatal("the cluster was not started in time")
		}
	}
	if len(namespaces(cmd.Process.Pid)) == 0 {
		t.Error("no namespaces while the drill runs")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("still there after SIGINT")
	}
	nothingLeft(t, temp, cmd.Process.Pid)
}
