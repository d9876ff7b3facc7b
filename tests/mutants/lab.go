package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// testTimeout ends a test that a mutant makes wait for ever. The tests themselves take
// a second or two.
const testTimeout = "120s"

// lab is a copy of the module in which mutants are tried.
type lab struct {
	ctx     context.Context // ends everything that the lab runs
	dir     string          // the copy
	binary  string          // the test binary of the moment
	out     io.Writer
	verbose bool
}

// verdict is what became of a mutant.
type verdict struct {
	caught bool
	by     string
}

func (v verdict) String() string {
	if !v.caught {
		return "SURVIVED"
	}
	return "caught by " + v.by
}

func newLab(ctx context.Context, root string, out io.Writer, verbose bool) (*lab, error) {
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, dir: filepath.Join(dir, "module"), binary: filepath.Join(dir, "tests"), out: out, verbose: verbose}
	if err := copyModule(root, l.dir); err != nil {
		l.close()
		return nil, fmt.Errorf("copy %s: %w", root, err)
	}
	return l, nil
}

// close removes the copy.
func (l *lab) close() { _ = os.RemoveAll(filepath.Dir(l.dir)) }

// applies says whether the mutant can be put into the code as it is.
func (l *lab) applies(m mutant) error {
	text, err := os.ReadFile(l.path(m.file))
	if err != nil {
		return fmt.Errorf("mutant %d (%s) %w: %w", m.line, m.name, errStale, err)
	}
	_, err = m.apply(string(text))
	return err
}

func (l *lab) path(file string) string { return filepath.Join(l.dir, filepath.FromSlash(file)) }

// baseline runs all tests that the mutants name on the code as it is: each must be
// there and pass.
func (l *lab) baseline(todo []mutant) error {
	named := make(map[string][]string)
	for _, m := range todo {
		named[m.pkg] = append(named[m.pkg], m.tests...)
	}
	for _, pkg := range sortedKeys(named) {
		tests := slices.Compact(slices.Sorted(slices.Values(named[pkg])))
		if output, err := l.compile(pkg); err != nil {
			return fmt.Errorf("the tests of %s do not compile as they are: %w\n%s", pkg, err, output)
		}
		output, err := l.test(pkg, tests)
		if err != nil {
			return fmt.Errorf("the tests of %s fail as they are: %w\n%s", pkg, err, output)
		}
		for _, name := range tests {
			if !bytes.Contains(output, []byte("--- PASS: "+name+" ")) {
				return fmt.Errorf("%w: %s has no test %s that passes", errStale, pkg, name)
			}
		}
	}
	return nil
}

// try puts the mutant in, runs its tests, and takes it out again. An error says that
// nothing was found out.
func (l *lab) try(m mutant) (verdict, error) {
	path := l.path(m.file)
	before, err := os.ReadFile(path)
	if err != nil {
		return verdict{}, err
	}
	after, err := m.apply(string(before))
	if err != nil {
		return verdict{}, err
	}
	if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
		return verdict{}, err
	}
	v, err := l.judge(m)
	return v, errors.Join(err, os.WriteFile(path, before, 0o600))
}

func (l *lab) judge(m mutant) (verdict, error) {
	if output, err := l.compile(m.pkg); l.ctx.Err() != nil {
		return verdict{}, l.ctx.Err()
	} else if err != nil {
		return verdict{}, fmt.Errorf("mutant %d (%s) does not compile: %w\n%s", m.line, m.name, err, output)
	}
	output, err := l.test(m.pkg, m.tests)
	if l.verbose {
		fmt.Fprintf(l.out, "%s\n", bytes.TrimSpace(output))
	}
	var exit *exec.ExitError
	switch {
	case l.ctx.Err() != nil:
		return verdict{}, l.ctx.Err()
	case err == nil:
		return verdict{}, nil
	case !errors.As(err, &exit) || !exit.Exited():
		return verdict{}, fmt.Errorf("mutant %d (%s): the tests could not be run: %w\n%s", m.line, m.name, err, output)
	}
	return verdict{caught: true, by: catcher(m, output)}, nil
}

var (
	failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	broken = regexp.MustCompile(`(?m)^(panic|fatal error): .*$`)
)

// catcher names what failed: the test, if possible with the row.
func catcher(m mutant, output []byte) string {
	by := ""
	for _, found := range failed.FindAllSubmatch(output, -1) {
		name := string(found[1])
		if by != "" && !strings.HasPrefix(name, by+"/") {
			break
		}
		by = name
	}
	hang := bytes.Contains(output, []byte("panic: test timed out"))
	switch what := broken.Find(output); {
	case hang:
		return m.pkg + " (hang: test timeout)"
	case by == "" && what != nil:
		return m.pkg + " (" + string(what) + ")"
	}
	return m.pkg + " " + by
}

// compile makes the test binary of a package.
func (l *lab) compile(pkg string) (output []byte, err error) {
	cmd := exec.CommandContext(l.ctx, "go", "test", "-c", "-vet=off", "-o", l.binary, "./"+pkg)
	cmd.Dir = l.dir
	return l.command(cmd)
}

// test runs the tests of the binary in the folder of their package.
func (l *lab) test(pkg string, tests []string) (output []byte, err error) {
	cmd := exec.CommandContext(l.ctx, l.binary, "-test.v", "-test.count=1", "-test.timeout="+testTimeout,
		"-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir = l.path(pkg)
	return l.command(cmd)
}

func (l *lab) command(cmd *exec.Cmd) ([]byte, error) {
	if l.verbose {
		fmt.Fprintf(l.out, "# %s\n", strings.Join(cmd.Args, " "))
	}
	return cmd.CombinedOutput()
}

// moduleRoot is the nearest folder with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("%w: no go.mod here or above", errUsage)
		}
		dir = up
	}
}

// copyModule copies what builds and what tests read: no history, binaries or data.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case rel == ".":
			return os.MkdirAll(to, 0o700)
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || rel == "bin" || rel == "data"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
