package ctl

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/membership"
)

// call runs a command line and gives what it printed.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = Execute(t.Context(), Root(), args, &out, &log)
	if log.Len() > 0 && args[0] != "__complete" {
		t.Errorf("%q wrote on stderr: %q", args, log.String())
	}
	return out.String(), err
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	tests := []struct {
		line string
		want string
	}{
		{"destroy", `"destroy"`},
		{"status --colour", "--colour"},
		{"status now", "seqctl status"},
		{"status -o xml", `"xml"`},
		{"status --addr here", "--addr"},
		{"status --timeout 0s", "--timeout"},
		{"status --timeout soon", "--timeout"},
		{"next", "seqctl next UID"},
		{"next 1 2", "seqctl next UID"},
		{"next x", `uid "x"`},
		{"next -- -1", `uid "-1"`},
		{"next 18446744073709551616", `uid "18446744073709551616"`},
		{"next 1 --key k", "seqctl next UID"},
		{"next --key=", "key of 0 bytes"},
		{"next 1 --count 0", "--count 0"},
		{"next 1 --count -5", "--count -5"},
		{"next 1 --count 1048577", "--count 1048577"},
		{"next 1 --count many", "--count"},
		{"next 1 --count 010", "leading zero"},
		{"next 007", "without leading zeros"},
		{"raise 1 010", "without leading zeros"},
		{"leases 010", "without leading zeros"},
		{"events --limit 010", "leading zero"},
		{"status --addr 0.0.0.0:7400", "every interface"},
		{"status --addr http://x:1", `"http://x:1"`},
		{"status --addr localhost", `"localhost"`},
		{"status --addr 127.0.0.1:0", "port 0"},
		{"current", "seqctl current UID"},
		{"current 1 x", `uid "x"`},
		{"current 1 2 --key k", "seqctl current UID"},
		{"raise 1", "seqctl raise UID"},
		{"raise x 5", `uid "x"`},
		{"raise 1 x", `sequence "x"`},
		{"raise 1 9007199254740992", "2^53-1"},
		{"raise --key k", "seqctl raise UID"},
		{"route 1 2", "seqctl route"},
		{"route x", `uid "x"`},
		{"leases x", `section "x"`},
		{"events --limit 0", "--limit 0"},
		{"drain", "seqctl drain NODE"},
		{"undrain a b", "seqctl undrain NODE"},
		{"move 1", "seqctl move SECTION NODE"},
		{"move x a", `section "x"`},
		{"move 1 a --unpin", "seqctl move SECTION NODE"},
		{"rebalance now", "seqctl rebalance"},
		{"gossip-key now", "seqctl gossip-key"},
		{"gossip-key --bytes 20", "--bytes"},
		{"gossip-key --bytes many", "--bytes"},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			out, err := call(t, strings.Fields(test.line)...)
			if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a usage error with %q", err, test.want)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestHelpIsPrintedAndIsNoError(t *testing.T) {
	for _, line := range []string{"", "--help", "next --help"} {
		out, err := call(t, strings.Fields(line)...)
		if err != nil || !strings.Contains(out, "seqctl") {
			t.Errorf("%q: got %v and %q", line, err, out)
		}
	}
}

func TestACommandLineWithoutAClusterFailsInOneLineThatNamesTheAddress(t *testing.T) {
	lines := []string{"status", "members", "route 1", "next 1", "current 1", "raise 1 5", "leases", "events", "drain a", "undrain a", "move 1 a", "rebalance"}
	for _, line := range lines {
		out, err := call(t, append(strings.Fields(line), "--addr", "127.0.0.1:1")...)
		if !errors.Is(err, errNoAnswer) || errors.Is(err, daemon.ErrUsage) || out != "" {
			t.Errorf("%s: got %v and output %q, want errNoAnswer", line, err, out)
			continue
		}
		if text := err.Error(); !strings.Contains(text, "127.0.0.1:1") || strings.Contains(text, "\n") {
			t.Errorf("%s: error %q, want one line with the address", line, text)
		}
	}
}

func TestAGossipKeyIsALineOfAKeysFile(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range []string{"gossip-key", "gossip-key", "gossip-key --bytes 16", "gossip-key --bytes 24"} {
		out, err := call(t, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := membership.LoadKeys(path)
		if err != nil || len(keys.Names()) != 1 || seen[out] {
			t.Errorf("%s: got %v, %v; seen before: %v", line, keys.Names(), err, seen[out])
		}
		seen[out] = true
	}
}
