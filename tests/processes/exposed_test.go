package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// alone runs a script in a network of its own, which has nothing but loopback: there a
// daemon may listen on every address and is reached by no caller.
func alone(t *testing.T, script string, env ...string) string {
	t.Helper()
	for _, tool := range []string{"unshare", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
	if out, err := exec.Command("unshare", "-rn", "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no network of its own: %v: %s", err, out)
	}
	cmd := exec.CommandContext(harness.Within(t), "unshare", "-rn", "sh", "-e", "-c", "ip link set lo up\n"+script)
	cmd.Env = append(harness.Command(t.Context(), t, env, "seqctl").Env, "PATH="+harness.Binaries(t)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestANodeInPlaintextBeyondTheMachineSaysSoInItsLogAndInTheStatus(t *testing.T) {
	const script = `
seqctl dev --data-dir "$DIR" --listen 0.0.0.0:7400 --http 0.0.0.0:7480 --sections 8 --allocs 1 $MORE >/dev/null &
until seqctl status $SHOW >"$DIR.status" 2>&1 && grep -q "routers: router-1 alive" "$DIR.status"; do kill -0 $!; sleep 0.1; done
cat "$DIR.status"
kill -INT $!
wait $!
`
	const line = "PLAINTEXT BEYOND THIS MACHINE"
	dir := filepath.Join(t.TempDir(), "d")
	for _, row := range []struct {
		more, show string
		exposed    bool
	}{
		{"", "", true},
		{"--secure", "--tls-ca " + dir + "/secure/ca.pem --token-file " + dir + "/secure/ops.token", false},
	} {
		before := logged(t, dir)
		status := alone(t, script, "DIR="+dir, "MORE="+row.more, "SHOW="+row.show)
		log := strings.TrimPrefix(logged(t, dir), before)
		if told := strings.Contains(status, "no TLS towards other machines (docs/security.md): router router-1\n"); told != row.exposed {
			t.Errorf("dev %s: status says %s", row.more, status)
		}
		want := 0
		if row.exposed {
			want = 1
		}
		if got := strings.Count(log, line); got != want || row.exposed && !strings.Contains(log, `addrs=[::]:7400,[::]:7480`) {
			t.Errorf("dev %s: %d lines in the log, want %d:\n%s", row.more, got, want, log)
		}
	}
}

// logged is what a dev's nodes have logged so far.
func logged(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "dev.log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
