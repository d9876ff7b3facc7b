package runbook

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repo = "../.."

// block is one fenced block of commands of a procedure.
type block struct {
	procedure string
	on        []string // the machines that run it, one after the other; an empty name is the operator
	fails     bool     // its commands must end with an error
	commands  []string
	where     string // document and line, for messages
}

// readBlocks returns the marked blocks of all documents in docs, in the order of each document.
func readBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(repo, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		blocks = append(blocks, readDocument(t, filepath.Base(name))...)
	}
	return slices.DeleteFunc(blocks, func(b block) bool { return b.procedure == "" })
}

func readDocument(t *testing.T, name string) (blocks []block) {
	t.Helper()
	file, err := os.Open(filepath.Join(repo, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var open *block
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.add(line)
		case strings.HasPrefix(line, "```sh"):
			b := parseFence(t, line, fmt.Sprintf("docs/%s:%d", name, n))
			open = &b
		}
	}
	if err := lines.Err(); err != nil || open != nil {
		t.Fatalf("%s: %v, unclosed block %+v", name, err, open)
	}
	return blocks
}

func parseFence(t *testing.T, fence, where string) block {
	t.Helper()
	b := block{where: where, on: []string{""}}
	for _, word := range strings.Fields(strings.TrimPrefix(fence, "```sh")) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "runbook":
			b.procedure = value
		case "on":
			b.on = strings.Split(value, ",")
		case "fails":
			b.fails = true
		default:
			t.Errorf("%s: %q is no mark of a block", where, word)
		}
	}
	return b
}

// add takes a line of the document in; one that ends in a backslash goes on in the next.
func (b *block) add(line string) {
	line = strings.TrimSpace(line)
	if last := len(b.commands) - 1; last >= 0 && strings.HasSuffix(b.commands[last], `\`) {
		b.commands[last] = strings.TrimSuffix(b.commands[last], `\`) + line
		return
	}
	if line != "" && !strings.HasPrefix(line, "#") {
		b.commands = append(b.commands, line)
	}
}
