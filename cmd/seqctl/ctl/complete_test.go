package ctl

import (
	"os/exec"
	"strings"
	"testing"
)

func TestNamesOfTheClusterAreCompleted(t *testing.T) {
	n := serve(t, gone)
	for line, want := range map[string]string{
		"drain --addr ADDR ":         "a gone",
		"move 17 --addr ADDR ":       "a gone",
		"leases --addr ADDR --node ": "a gone",
		"next --addr ADDR --space ":  "user",
		"status -o ":                 "table json yaml",
		"completion ":                "bash zsh fish",
		"drain --addr 127.0.0.1:1 ":  "", // quietly: somebody is at a prompt
	} {
		args := strings.Split(strings.ReplaceAll(line, "ADDR", n.addr), " ")
		out, err := call(t, append([]string{"__complete"}, args...)...)
		words, _, _ := strings.Cut(out, ":4\n") // no file names
		if got := strings.Join(strings.Fields(words), " "); err != nil || got != want {
			t.Errorf("%s: completed %q, %v, want %q", line, got, err, want)
		}
	}
}

func TestEachShellsCompletionIsInstalledByThePrintedLine(t *testing.T) {
	lines := must(t, "completion")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if !strings.Contains(lines, "seqctl completion "+shell) {
			t.Errorf("no line for %s in\n%s", shell, lines)
		}
		script := must(t, "completion "+shell)
		if !strings.Contains(script, "seqctl") {
			t.Errorf("the script for %s: %.100q", shell, script)
		}
		if path, err := exec.LookPath(shell); err == nil {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s does not read it: %v\n%s", shell, err, out)
			}
		}
	}
}
