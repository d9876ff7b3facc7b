package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// kept is the file of the tests that caught the mutants, one line each:
//
//	sum  rule: name -> package Test
//
// The sum is of the texts that the verdict depends on most: the mutant, its file and the
// tests of its packages. A run asks the named test first, whatever the sum is.
type kept struct {
	file string
	mu   sync.Mutex
	by   map[string]string // by mutant
	sums map[string]string
}

func readKept(file string) (*kept, error) {
	k := &kept{file: file, by: map[string]string{}, sums: map[string]string{}}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	} else if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, rest, ok := strings.Cut(lines.Text(), "  ")
		of, by, arrow := strings.Cut(rest, " -> ")
		if !ok || !arrow {
			return nil, fmt.Errorf("%s: %q, expected: sum  mutant -> package test", file, lines.Text())
		}
		k.by[of], k.sums[of] = by, sum
	}
	return k, lines.Err()
}

// note keeps the verdict on a mutant. One that was not caught loses its line.
func (k *kept) note(m mutant, v verdict, sum string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v.caught(m) && v.by != "" {
		k.by[m.String()], k.sums[m.String()] = v.by, sum
	} else {
		delete(k.by, m.String())
	}
}

// write replaces the file. Mutants that have left the list leave it too.
func (k *kept) write(list []mutant) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines := map[string]bool{}
	for _, m := range list {
		if by := k.by[m.String()]; by != "" {
			lines[fmt.Sprintf("%s  %v -> %s\n", k.sums[m.String()], m, by)] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(lines), func(a, b string) int {
		_, a, _ = strings.Cut(a, "  ")
		_, b, _ = strings.Cut(b, "  ")
		return strings.Compare(a, b)
	})
	next := k.file + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(sorted, "")), 0o600); err != nil {
		return err
	}
	return os.Rename(next, k.file)
}

// sim tells that the simulation caught a mutant of which the list wants that: it would have
// no line else.
func (k *kept) sim(m mutant) string {
	if m.sim {
		return "as the last time"
	}
	return ""
}

// holds reports whether the file has a verdict for these very texts.
func (k *kept) holds(m mutant, sum string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.by[m.String()] != "" && k.sums[m.String()] == sum
}

// sum returns the hash of the mutant, of the file that it changes and of the tests that should catch it.
func (l *lab) sum(m mutant) (string, error) {
	text, err := l.applied(m)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", m.file, text)
	for _, pkg := range m.in {
		tests, err := filepath.Glob(filepath.Join(l.path(pkg), "*_test.go"))
		if err != nil {
			return "", err
		}
		for _, name := range tests {
			text, err := os.ReadFile(name)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%s %d\n%s", filepath.Base(name), len(text), text)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}
