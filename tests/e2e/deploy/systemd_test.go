package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exposure is what `systemd-analyze security` may say at most, in tenths: 10 is a
// service without any restriction.
const exposure = "20"

func TestUnitsPassTheChecksOfSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	units, err := filepath.Glob(filepath.Join(repo, "deploy/systemd/*.service"))
	if err != nil || len(units) != 3 {
		t.Fatalf("got %d units, %v, want 3", len(units), err)
	}
	for _, unit := range units {
		name := filepath.Base(unit)
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		program := strings.TrimSuffix(strings.TrimPrefix(name, "seqsvr-"), ".service")
		installed := strings.ReplaceAll(string(text), "/usr/local/bin/"+program, daemon(t, program))
		if installed == string(text) {
			t.Errorf("%s does not start /usr/local/bin/%s", name, program)
		}
		copied := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(copied, []byte(installed), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(analyze, "verify", copied).CombinedOutput(); err != nil || strings.Contains(string(out), name) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold="+exposure, copied).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
