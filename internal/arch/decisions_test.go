package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisionsHaveOneFormAndAreThere holds docs/decisions.md to entries with rising numbers that say what was
// decided, why, and what was rejected; and comments of the code to entries that exist.
func TestDecisionsHaveOneFormAndAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/decisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.Split(string(text), "\n## ")[1:]
	there := map[string]bool{}
	last := ""
	for _, entry := range entries {
		number, _, _ := strings.Cut(entry, " ")
		if !regexp.MustCompile(`^\d{3}$`).MatchString(number) || number <= last {
			t.Errorf("docs/decisions.md: %q stands behind %q, numbers have three digits and rise", number, last)
		}
		for _, part := range []string{"\nDecided: ", "\nBecause: ", "\nRejected: "} {
			if strings.Count(entry, part) != 1 {
				t.Errorf("docs/decisions.md, %s: expected one line that begins with %q", number, strings.TrimSpace(part))
			}
		}
		if n := wordsOf(entry); n > 90 {
			t.Errorf("docs/decisions.md, %s: %d words, expected some 50: details stand in the package comment", number, n)
		}
		there[number], last = true, number
	}
	reference := regexp.MustCompile(`docs/decisions\.md, (\d{3})`)
	found := 0
	for _, f := range files(t) {
		for _, to := range reference.FindAllStringSubmatch(string(f.text), -1) {
			if found++; !there[to[1]] {
				t.Errorf("%s: docs/decisions.md has no entry %s", f.name, to[1])
			}
		}
	}
	if found == 0 || len(entries) < 60 {
		t.Errorf("found %d entries and %d references to them", len(entries), found)
	}
}
