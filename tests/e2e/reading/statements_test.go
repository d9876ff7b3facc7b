package reading

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// document returns docs/reading.md.
func document(t testing.TB) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reading.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// statements has the SQL of the document.
type statements struct {
	table, key                string // made once, and for each key
	lock                      string
	write, raise, read, floor string
}

// one returns the statement of the document that begins so. It is a code span, or ends with a semicolon.
func one(t testing.TB, text, begins string) string {
	t.Helper()
	if n := strings.Count(text, begins); n != 1 {
		t.Fatalf("docs/reading.md has %q %d times, expected once", begins, n)
	}
	at := strings.Index(text, begins)
	end := strings.IndexAny(text[at:], ";`")
	if end < 0 {
		t.Fatalf("docs/reading.md: the statement %q has no end", begins)
	}
	return text[at : at+end]
}

func readStatements(t testing.TB) statements {
	text := document(t)
	return statements{
		table: one(t, text, "create table inbox_floor"),
		key:   one(t, text, "insert into inbox_floor"),
		lock:  one(t, text, "select 1 from inbox_floor"),
		write: one(t, text, "insert into message"),
		floor: one(t, text, "select floor from inbox_floor"),
		raise: one(t, text, "update inbox_floor"),
		read:  one(t, text, "select n, body from message"),
	}
}
