package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// explained says, by key, why a change that no test sees does no harm. In the file a line
// is key, " -- " and why; lines that begin with # are for readers.
type explained map[string]string

func readExplained(name string) (explained, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	known := explained{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, why, ok := strings.Cut(line, " -- ")
		if !ok || key == "" || why == "" || known[key] != "" {
			return nil, fmt.Errorf("%w: %s:%d: expected a key that is not there yet, \" -- \" and why", errUsage, name, n)
		}
		known[key] = why
	}
	return known, lines.Err()
}

// stale: an explanation of a change in the files of the subject that is not there.
func (e explained) stale(s *subject) error {
	var gone []string
	for key := range e {
		file, _, _ := strings.Cut(key, ":")
		ours := slices.ContainsFunc(s.files, func(f *source) bool { return file == filepath.Base(s.dir)+"/"+f.name })
		if ours && !slices.ContainsFunc(s.places, func(p *place) bool { return p.key == key }) {
			gone = append(gone, key)
		}
	}
	if slices.Sort(gone); len(gone) > 0 {
		return fmt.Errorf("%w: explained, and no longer there:\n%s", errUsage, strings.Join(gone, "\n"))
	}
	return nil
}
