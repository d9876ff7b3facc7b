package setctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/sets"
)

// call runs a command line and gives what it printed.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	root := ctl.Root()
	root.AddCommand(Command())
	err = ctl.Execute(t.Context(), root, append([]string{"set"}, args...), &out, &log)
	return out.String(), err
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"destroy":                              `"destroy"`,
		"list now":                             "seqctl set list",
		"show -o xml":                          `"xml"`,
		"add":                                  "NAME",
		"add b":                                "--set-addr",
		"add b --set-addr here":                `"here"`,
		"add B --set-addr a:1":                 `"B"`,
		"add b --set-addr a:1 --timeout 0s":    "--timeout",
		"move":                                 "--id N",
		"move --to b":                          "--sections A-B",
		"move --sections 1":                    "--to NAME",
		"move --id 1 --to b":                   "--id N",
		"move --sections 1 --to b --id 1":      "--id N",
		"move --sections x --to b":             `"x"`,
		"move --sections 9-3 --to b":           `"9-3"`,
		"move --sections 5,4 --to b":           "in order",
		"move --sections 0-99999999999 --to b": "0-99999999999",
		"move --id -1":                         "--id",
		"settle":                               "--set NAME",
		"settle --set b --bump 0":              "--bump",
		"abort":                                "--id N",
		"abort 3":                              "arguments",
	} {
		out, err := call(t, strings.Fields(line)...)
		if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: got %v and output %q, want a usage error with %q", line, err, out, want)
		}
	}
}

func TestVerbsFailWithTheAddressWhereNothingAnswers(t *testing.T) {
	for _, line := range []string{"list", "show", "add b --set-addr 127.0.0.1:2", "move --sections 1 --to b", "move --id 1", "abort --id 1", "settle --set b"} {
		args := append(strings.Fields(line), "--addr", "127.0.0.1:1", "--timeout", "2s")
		if out, err := call(t, args...); err == nil || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "127.0.0.1:1") || out != "" {
			t.Errorf("%s: got %v and %q, want an error with the address", line, err, out)
		}
	}
}

func TestAnUnfinishedMoveSaysWhatToDoInOneLine(t *testing.T) {
	move := sets.Move{ID: 3, From: "main", To: "b", Sections: []sets.Range{{First: 4, Sections: 2}}}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	down := fmt.Errorf("move 3 of sections [4-5] from Set main to b: Set b: %w: %w", setadmin.ErrSetDown,
		errors.Join(errors.New("Set b at a:1: rpc error: dial tcp a:1: connect: connection refused"), errors.New("Set b at a:2: connect: connection refused")))
	for _, test := range []struct {
		ctx  context.Context
		err  error
		is   error
		want []string
	}{
		{t.Context(), down, setadmin.ErrSetDown, []string{"Set b: no AllocSvr of the Set answers: connection refused", "seqctl set move --id 3", "seqctl set abort --id 3"}},
		{stopped, fmt.Errorf("seal: %w", context.Canceled), context.Canceled, []string{"is open", "seqctl set move --id 3", "seqctl set abort --id 3"}},
		{t.Context(), fmt.Errorf("open: %w", setadmin.ErrRefused), setadmin.ErrRefused, []string{"seqctl set abort --id 3"}},
		{t.Context(), fmt.Errorf("seal: %w", setadmin.ErrTakenBack), setadmin.ErrTakenBack, []string{"seqctl set show"}},
		{t.Context(), fmt.Errorf("open: %w", context.DeadlineExceeded), errInTime, []string{"is open", "seqctl set move --id 3"}},
	} {
		err := unfinished(test.ctx, move, test.err)
		if text := err.Error(); !errors.Is(err, test.is) || strings.Contains(text, "\n") || !strings.Contains(text, "move 3 of sections 4-5 from Set main to b") {
			t.Errorf("%v: got %v, want %v with the move in one line", test.err, err, test.is)
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: got %q, want %q in it", test.err, err, want)
			}
		}
	}
}
