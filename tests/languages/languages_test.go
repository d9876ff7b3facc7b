package languages

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// program is an example in one language: its command line without the address.
type program struct {
	args []string
	env  []string
}

func python(t *testing.T, examples string) program {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} { // one installed by hand, or the system's
		if exec.Command(name, "-c", "import grpc.aio, google.protobuf").Run() != nil {
			continue
		}
		gen := t.TempDir()
		if out, err := exec.Command(filepath.Join(examples, "python", "make_stubs.sh"), gen).CombinedOutput(); err != nil {
			t.Skipf("no stubs can be made (protobuf-compiler-grpc or grpcio-tools): %v\n%s", err, out)
		}
		return program{[]string{name, filepath.Join(examples, "python", "example.py")}, []string{"PYTHONPATH=" + gen, "PYTHONDONTWRITEBYTECODE=1"}}
	}
	t.Skip("no python3 has grpc.aio (python3-grpcio)")
	return program{}
}

// measured is the last line of an example.
type measured struct {
	Single, Gathered int
	Times            float64
	Refused          string
}

// run runs an example against the cluster; at is called when it begins to measure.
func (p program) run(t *testing.T, addr string, at func()) (out []string, last measured) {
	t.Helper()
	cmd := exec.CommandContext(harness.Within(t), p.args[0], append(p.args[1:], addr)...)
	cmd.Env = append(append(os.Environ(), fmt.Sprint("SEQ_CALL_SECONDS=", harness.Patience.Seconds())), p.env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		out = append(out, lines.Text())
		if strings.HasPrefix(lines.Text(), "snowflake ID: ") {
			at()
		}
	}
	if err := cmd.Wait(); err != nil || len(out) == 0 {
		t.Fatalf("%v after %q: %s", err, out, errs.String())
	}
	if err := json.Unmarshal([]byte(out[len(out)-1]), &last); err != nil {
		t.Fatalf("last line %q: %v", out[len(out)-1], err)
	}
	return out, last
}

func TestTheExamplesRunAndGatheringPays(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	for name, find := range map[string]func(*testing.T, string) program{"python": python} {
		t.Run(name, func(t *testing.T) {
			p := find(t, filepath.Join(root, "examples"))
			c := harness.Start(t, harness.AskOnce)
			out, got := p.run(t, c.GRPC(), func() {})
			t.Logf("single %d/s, gathered %d/s, %.0f times", got.Single, got.Gathered, got.Times)
			if len(out) < 5 || out[0] != "next of 42: 1" || !strings.HasSuffix(out[1], "101") {
				t.Errorf("printed %q, want numbers from 1 on", out)
			}
			if !strings.Contains(got.Refused, "unknown space") {
				t.Errorf("a wrong space was refused with %q", got.Refused)
			}
			if got.Times < 2 {
				t.Errorf("gathered calls are %.1f times single ones", got.Times)
			}
			// The example itself checks that the numbers of a UID rise.
			p.run(t, c.GRPC(), func() {
				if err := c.Processes(localcluster.RoleAlloc)[0].Kill(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
