package main

import (
	"errors"
	"fmt"
	"strings"
)

// lines is how many lines the mutation list has.
const lines = 34

// mutant is one line of the list, put into the code.
type mutant struct {
	line  int
	name  string
	file  string // from the root of the module, with slashes
	edits []edit
	pkg   string   // folder of the tests
	tests []string // top-level tests, at least one of which must fail
}

// edit replaces a text that occurs exactly once in the file.
type edit struct{ old, new string }

// unbuilt are the lines that cannot be put into the code, because what they break is
// not there.
var unbuilt = map[int]string{}

// mutants is the whole list.
func mutants() []mutant {
	var all []mutant
	for line := 1; line <= lines; line++ {
		for _, table := range [][]mutant{storeMutants, quorumMutants, ownerMutants, careMutants} {
			for _, m := range table {
				if m.line == line {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// errStale: the code has changed since the mutant was written.
var errStale = errors.New("no longer applies")

// apply puts the mutant into the text of its file.
func (m mutant) apply(text string) (string, error) {
	for _, e := range m.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("mutant %d (%s) %w: found %d times in %s, expected once:\n%s", m.line, m.name, errStale, n, m.file, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}
