package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheVersionBeforeIsBuilt(t *testing.T) {
	dir := Previous(t)
	for _, name := range []string{"storesvr", "allocsvr", "router", "seqctl"} {
		out, err := exec.Command(filepath.Join(dir, name), "version").CombinedOutput()
		if err != nil {
			out, err = exec.Command(filepath.Join(dir, name), "--version").CombinedOutput()
		}
		if err != nil || !strings.Contains(string(out), "protocol 2") {
			t.Errorf("%s: %v: %s, expected protocol 2", name, err, out)
		}
	}
}
