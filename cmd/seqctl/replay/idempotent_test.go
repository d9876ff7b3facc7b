package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// replayed runs the verb, and gives its report and what it wrote to --out.
func replayed(t *testing.T, addr string, args ...string) (report, string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.txt")
	cmd, printed := Command(), &bytes.Buffer{}
	cmd.SetArgs(append(args, "--addr", addr, "-o", "json", "--out", out))
	cmd.SetOut(printed)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	var r report
	if err == nil {
		err = json.Unmarshal(printed.Bytes(), &r)
	}
	lines, _ := os.ReadFile(out)
	return r, string(lines), err
}

func TestALogWithRequestIDsGetsTheSameNumbersAgain(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "orders", Sections: 8, Mode: seq.Exact})
	text := made(t, 20, 500)
	log := filepath.Join(t.TempDir(), "log.txt")
	if err := os.WriteFile(log, text, 0o600); err != nil {
		t.Fatal(err)
	}
	addr := cluster.Nodes[0].Addr()
	first, numbers, err := replayed(t, addr, log, "--space", "orders", "--request-ids")
	if err != nil || first.Events != 500 || first.Replayed != 0 || numbers != expected(t, text) {
		t.Fatalf("first: got %+v, %v", first, err)
	}
	second, again, err := replayed(t, addr, log, "--space", "orders", "--request-ids")
	if err != nil || second.Replayed != 500 || second.Duplicates+second.Regressions+second.Gaps != 0 || again != numbers {
		t.Errorf("second: got %+v, %v, the same numbers: %v", second, err, again == numbers)
	}
	if third, others, err := replayed(t, addr, log, "--space", "orders"); err != nil || third.Replayed != 0 || others == numbers {
		t.Errorf("without ids: got %+v, %v, the same numbers: %v", third, err, others == numbers)
	}
	if _, _, err := replayed(t, addr, log, "--request-ids"); !errors.Is(err, seq.ErrIDNotKept) {
		t.Errorf("in an ordinary space: %v", err)
	}
}
