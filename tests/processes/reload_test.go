package processes

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// reloaded is what one daemon's file says before and after, and what its log must have
// then.
// One key of each is one that only a restart takes.
var reloaded = map[localcluster.Role]struct {
	before, after string
	want          []string
}{
	localcluster.RoleStore: {
		"near-full: 1000000\nmax-lease: 10s\ngossip-profile: fast\n",
		"near-full: 2000000\nmax-lease: 9s\ngossip-profile: lan\n",
		[]string{"setting=near-full from=1000000 to=2000000", "setting=max-lease from=10s to=9s",
			`msg="setting needs a restart" setting=gossip-profile from=fast to=lan`},
	},
	localcluster.RoleAlloc: {
		"max-in-work: 20000\nmax-stream-waits: 10\nuid-memory: 2000000\nweight: 100\n",
		"max-in-work: 30000\nmax-stream-waits: 20\nuid-memory: 4000000\nweight: 200\n",
		[]string{"setting=uid-memory from=2000000 to=4000000", "setting=max-stream-waits from=10 to=20", "setting=max-in-work from=20000 to=30000", `msg="setting needs a restart" setting=weight from=100 to=200`},
	},
	localcluster.RoleRouter: {
		"max-in-work: 20000\nhttp-max-body: 4096\nresp-max-conns: 10\nresp-max-pipeline: 10\ntimeout: 10s\n",
		"max-in-work: 30000\nhttp-max-body: 8192\nresp-max-conns: 20\nresp-max-pipeline: 20\ntimeout: 20s\n",
		[]string{"setting=max-in-work from=20000 to=30000", "setting=http-max-body from=4096 to=8192", "setting=resp-max-conns from=10 to=20",
			"setting=resp-max-pipeline from=10 to=20", `msg="setting needs a restart" setting=timeout from=10s to=20s`},
	},
}

func TestEveryDaemonReloadsItsLogLevelAndLimitsAtAHangup(t *testing.T) {
	files := t.TempDir()
	path := func(role localcluster.Role) string { return filepath.Join(files, string(role)+".yaml") }
	put := func(role localcluster.Role, text string) {
		t.Helper()
		if err := os.WriteFile(path(role), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := map[localcluster.Role][]string{}
	for role, r := range reloaded {
		put(role, r.before+"log-level: info\n")
		args[role] = []string{"--config", path(role)}
	}
	c := start(t, func(cfg *localcluster.Config) { cfg.Args, cfg.Supervise = args, true })
	hangup := func(want ...string) {
		t.Helper()
		for _, p := range c.Processes() {
			if err := syscall.Kill(p.Pid(), syscall.SIGHUP); err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
		}
		for _, p := range c.Processes() {
			for _, line := range append(want, reloaded[p.Role].want...) {
				harness.Until(t, p.Name+" logs "+line, func() bool {
					text, err := os.ReadFile(p.Log)
					return err == nil && strings.Contains(string(text), line)
				})
			}
		}
	}
	for role, r := range reloaded {
		put(role, r.after+"log-level: debug\n")
	}
	hangup(`msg="setting changed" setting=log-level from=info to=debug`, `msg="settings reloaded"`)
	// A file that is not sound changes nothing, not even what is sound in it.
	for role, r := range reloaded {
		put(role, r.before+"log-level: warn\nno-such-key: 1\n")
	}
	hangup(`msg="settings not reloaded, nothing is changed"`, "no-such-key")
	for _, p := range c.Processes() {
		text, err := os.ReadFile(p.Log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "to=warn") {
			t.Errorf("%s took a part of a file that is not sound", p.Name)
		}
		if !p.Running() {
			t.Errorf("%s has ended: %s", p.Name, p.Exit())
		}
	}
	if got := run(t, "seqctl", "next", "--addr", c.GRPC(), "--timeout", harness.Patience.String(), "7"); got.Code != 0 {
		t.Errorf("next after it all: exit %d, %s", got.Code, got.Stderr)
	}
}
