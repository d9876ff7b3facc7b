package drills

import (
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
)

// onEtcd runs a drill on members of etcd. The lease is long, so that a busy machine has the time
// for an election.
func onEtcd(t *testing.T, name string, flags ...string) report {
	t.Helper()
	etcdtest.Tool(t, "etcd")
	return run(t, name, append([]string{"--engine", "etcd", "--lease", "8s", "--sections", "256"}, flags...)...)
}

func TestOnEtcdAKilledAllocIsTakenOver(t *testing.T) {
	onEtcd(t, "kill-alloc").wants(t, "lease ended", "taken over", "first answer")
}

func TestALeaderOfEtcdThatStandsStillFailsNoCall(t *testing.T) {
	r := onEtcd(t, "pause-leader", "--pause", "12s") // longer than the lease
	if faults, mended := r.count("fault"), r.count("mended"); faults != 1 || mended != 1 {
		t.Errorf("%d pauses and %d ends of pauses, want 1 and 1: %v", faults, mended, r.Timeline)
	}
}

func TestAClusterOfOthersOnEtcdIsDrilledAndItsEtcdLeftAlone(t *testing.T) {
	flags := []string{"--etcd", etcdtest.Start(t, 1).Endpoints()[0], "--etcd-prefix", "/others", "--etcd-min-version", "3.4.0"}
	c := dev(t, append(flags, "--lease", "8s", "--sections", "256")...)
	drill := func(name string, more ...string) outcome {
		t.Helper()
		return seqctl(t, t.TempDir(), append([]string{"drill", name, "-o", "json", "--rate", "400", "--timeout", "60s", "--ready-file", c.file}, more...)...)
	}
	check(t, drill("kill-alloc", flags...), "").wants(t, "lease ended", "taken over", "first answer")
	if end := drill("kill-store", flags...); end.Code != 2 || !strings.Contains(end.Stderr, lab.ErrEngine.Error()) {
		t.Errorf("exit %d: %s; want 2 and %v", end.Code, end.Stderr, lab.ErrEngine)
	}
}
