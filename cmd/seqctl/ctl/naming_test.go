package ctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAnErrorBeginsWithItsVerbOnce(t *testing.T) {
	cause := errors.New("cause")
	for text, want := range map[string]string{
		"no room":                "store add: no room",
		"add: no room":           "store add: no room",
		"add 10.0.0.1: no room":  "store add 10.0.0.1: no room",
		"store add: no room":     "store add: no room",
		"address is wrong":       "store add: address is wrong",
		"adding to the list: no": "store add: adding to the list: no",
	} {
		var out strings.Builder
		root := Root()
		root.AddCommand(Group(&cobra.Command{Use: "store"}, &cobra.Command{Use: "add", RunE: func(*cobra.Command, []string) error {
			return &retold{text, cause}
		}}))
		err := Execute(t.Context(), root, []string{"store", "add"}, &out, &out)
		if err == nil || err.Error() != want || !errors.Is(err, cause) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestAWrongWordIsAnsweredWithTheRightOne(t *testing.T) {
	for line, want := range map[string]string{
		"nxt 42":               `unknown verb "nxt", did you mean next?`,
		"context lst":          `unknown verb "lst", did you mean list?`,
		"next 1 --cont 3":      "unknown flag --cont, did you mean --count?",
		"status --adr a:1":     "unknown flag --adr, did you mean --addr?",
		"next 1 --count x":     `--count "x": expected a whole number`,
		"next 1 --timeout 5":   `--timeout "5": expected a time with its unit`,
		"drain a --wait=maybe": `--wait "maybe": expected true or false`,
		"completion bsh":       `"bsh": expected one of bash, zsh, fish`,
	} {
		_, err := call(t, strings.Fields(line)...)
		if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

func TestANegativeNumberIsNoFlag(t *testing.T) {
	for _, line := range []string{"next -1", "raise 42 -17", "current 1 -2"} {
		_, err := call(t, strings.Fields(line)...)
		if !errors.Is(err, daemon.ErrUsage) || !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), ": expected a whole number from 0 on") {
			t.Errorf("%s: got %v, want a usage error that names the number", line, err)
		}
	}
}
