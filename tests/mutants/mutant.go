package main

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
)

// mutant is one way to break a rule. The tables are plain data, one a topic: who makes
// a rule adds a line to the table that it belongs to.
type mutant struct {
	line  int    // number of the rule in the list; zero if it has only a name
	rule  string // name of the rule, the same for all mutants of it
	name  string // what the mutant does; no other mutant of the rule has it
	file  string // from the root of the module, with slashes
	edits []edit
	in    []string // folders of the packages whose whole tests are run, cheap ones first
	sim   bool     // the simulation must catch it as well as the packages
	// processes is the test of real processes that catches it. If empty, packages do.
	processes string
}

// edit replaces a text that occurs exactly once in the file. In the tables it is {old, new}.
type edit struct{ old, new string }

// tables are all topics.
var tables = [][]mutant{
	storeMutants, quorumMutants, ownerMutants, careMutants, trustMutants,
	exactMutants, onceMutants, copyMutants, judgeMutants, leaseMutants, diskMutants, lostWriteMutants, floorMutants, limitMutants, idMutants, truthMutants, memoryMutants, callerMemoryMutants, keyMutants, versionMutants, frontMutants, loanMutants, requestMutants, transportMutants, authMutants, consoleMutants, bulkMutants, spaceMutants, etcdMutants, zoneMutants, setsMutants, setCallerMutants, allotMutants,
	batchMutants, ticketMutants, watchMutants,
	inputMutants, browserMutants,
	callerLifeMutants, identityMutants, beforeSetsMutants, preemptMutants,
}

// mutants is the whole list: what has a number first, in the order of the numbers.
func mutants() []mutant {
	all := slices.Concat(tables...)
	slices.SortStableFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(b2i(a.line == 0), b2i(b.line == 0)), cmp.Compare(a.line, b.line))
	})
	return all
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (m mutant) String() string {
	if m.line == 0 {
		return m.rule + ": " + m.name
	}
	return fmt.Sprintf("%d %s: %s", m.line, m.rule, m.name)
}

// number stays the same while the list grows, so that what is compiled stays the same too.
func (m mutant) number() int { return int(crc32.ChecksumIEEE([]byte(m.String()))) }

// errStale: the code has changed since the mutant was written.
var errStale = errors.New("no longer applies")

// apply puts the mutant into the text of its file.
func (m mutant) apply(text string) (string, error) {
	for _, e := range m.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("mutant %v %w: found %d times in %s, expected once:\n%s", m, errStale, n, m.file, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}

// chosen are the mutants whose rule is asked for, by number or name; all if only is
// empty.
func chosen(all []mutant, only string) ([]mutant, error) {
	if only == "" {
		return all, nil
	}
	var some []mutant
	for word := range strings.SplitSeq(only, ",") {
		word = strings.TrimSpace(word)
		n := len(some)
		for _, m := range all {
			if word == m.rule || word != "0" && word == fmt.Sprint(m.line) {
				some = append(some, m)
			}
		}
		if len(some) == n {
			return nil, fmt.Errorf("%w: no rule %q, expected a number or a name of the list", errUsage, word)
		}
	}
	return some, nil
}

// inPackages are the mutants that name one of the packages first, in the order of the
// packages; all, package by package, if only is empty.
func inPackages(all []mutant, only string) ([]mutant, error) {
	var order []string
	for _, m := range all {
		if !slices.Contains(order, m.in[0]) {
			order = append(order, m.in[0])
		}
	}
	if only != "" {
		order = strings.Split(only, ",")
	}
	var some []mutant
	for _, pkg := range order {
		n := len(some)
		for _, m := range all {
			if m.in[0] == pkg {
				some = append(some, m)
			}
		}
		if len(some) == n {
			return nil, fmt.Errorf("%w: no mutant in %q, expected the folder of a package", errUsage, pkg)
		}
	}
	return some, nil
}
