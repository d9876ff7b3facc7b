package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"sync"
)

// testTimeout ends the tests of a package that a mutant makes wait for ever. The tests
// themselves take seconds.
const testTimeout = "180s"

// lab is a copy of the module in which mutants are tried. Each trial puts its text over
// the copy for its own compilations only, so that several may run at one time.
type lab struct {
	ctx     context.Context // ends everything that the lab runs
	dir     string          // the copy, and a folder a trial
	module  string          // the copy
	seeds   int             // of the simulation; zero means no simulation
	verbose bool

	mu  sync.Mutex // of out
	out io.Writer
}

// verdict is what became of a mutant: who caught it, if anybody did.
type verdict struct {
	by  string // a test of the packages
	sim string // the simulation
	ran bool   // the simulation was run
}

// caught says whether the mutant is caught as the list wants it.
func (v verdict) caught(m mutant) bool {
	return m.sim && v.by != "" && v.sim != "" || !m.sim && (v.by != "" || v.sim != "")
}

func (v verdict) String() string {
	what := "SURVIVED its packages"
	if v.by != "" {
		what = "caught by " + v.by
	}
	switch {
	case v.sim != "":
		what += ", and by the simulation: " + v.sim
	case v.ran:
		what += ", SURVIVED the simulation"
	}
	return what
}

func newLab(ctx context.Context, root string, out io.Writer, verbose bool) (*lab, error) {
	dir, err := os.MkdirTemp("", "mutants-*")
	if err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, dir: dir, module: filepath.Join(dir, "module"), seeds: simSeeds, out: out, verbose: verbose}
	if err := copyModule(root, l.module); err != nil {
		l.close()
		return nil, fmt.Errorf("copy %s: %w", root, err)
	}
	return l, nil
}

// close removes the copy.
func (l *lab) close() { _ = os.RemoveAll(l.dir) }

func (l *lab) path(file string) string { return filepath.Join(l.module, filepath.FromSlash(file)) }

func (l *lab) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format, args...)
}

func (l *lab) read(file string) (string, error) {
	text, err := os.ReadFile(l.path(file))
	return string(text), err
}

// applied is the file of the mutant with the mutant in it.
func (l *lab) applied(m mutant) (string, error) {
	text, err := l.read(m.file)
	if err != nil {
		return "", fmt.Errorf("mutant %v %w: %w", m, errStale, err)
	}
	return m.apply(text)
}

// try runs the packages of a mutant, cheap ones first, until one catches it; and the
// simulation, if the packages did not or if it is wanted. An error says that nothing was
// found out.
func (l *lab) try(m mutant, simulate bool) (v verdict, err error) {
	text, err := l.applied(m)
	if err != nil {
		return v, err
	}
	t, err := l.trial(map[string]string{m.file: text})
	if err != nil {
		return v, err
	}
	defer t.end()
	in, only := m.in, ""
	if m.processes != "" {
		in, only = []string{processes}, "^"+m.processes+"$"
	}
	for _, pkg := range in {
		compiles, by, err := t.judge(pkg, only)
		switch {
		case err != nil:
			return v, err
		case !compiles:
			return v, fmt.Errorf("mutant %v does not compile: %s", m, by)
		}
		if v.by = by; by != "" {
			if err := l.passes(pkg, by); err != nil {
				return v, err
			}
			break
		}
	}
	if v.ran = l.seeds > 0 && (simulate || m.sim || v.by == ""); v.ran {
		v.sim, err = t.simulate(l.seeds, m.engine())
	}
	return v, err
}

// passes returns an error if the test that caught a mutant fails on the code as it is too; if
// no test is named, the whole package must pass. One that fails may try again, since the
// machine may be busy.
func (l *lab) passes(pkg, by string) error {
	t, err := l.trial(nil)
	if err != nil {
		return err
	}
	defer t.end()
	binary, output, err := t.compile(pkg)
	if err != nil {
		return fmt.Errorf("%s does not compile as it is: %w\n%s", pkg, err, output)
	}
	only := ""
	if name, _ := strings.CutPrefix(by, pkg+" "); strings.HasPrefix(name, "Test") {
		only = "^" + testName(name) + "$"
	}
	failed := true
	for i := 0; failed && i < tries && err == nil; i++ {
		failed, output, err = t.test(binary, pkg, only, testTimeout)
	}
	if err == nil && failed {
		err = fmt.Errorf("the tests of %s fail as they are: %s\n%s", pkg, by, output)
	}
	return err
}

// trial is a place to compile and test the copy with one file replaced.
type trial struct {
	*lab
	dir string
	env []string
}

// trial makes a trial with the texts, by file of the module, over the copy.
func (l *lab) trial(over map[string]string) (*trial, error) {
	dir, err := os.MkdirTemp(l.dir, "trial-*")
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for file, text := range over {
		mutated := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return nil, err
		}
		replace[l.path(file)] = mutated
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "overlay.json")
	// By the environment, for tests that build commands themselves. The folder of the copy
	// has no part in what is compiled, so that every run shares the build cache.
	// Tests that want programs build them from the mutant, whatever the caller has built.
	env := append(os.Environ(), "SEQSVR_BIN=", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath -overlay="+name)
	return &trial{lab: l, dir: dir, env: env}, os.WriteFile(name, overlay, 0o600)
}

func (t *trial) end() { _ = os.RemoveAll(t.dir) }

// tries is the number of runs of a package before a failure that does not repeat counts.
const tries = 3

// judge runs the tests of a package that only selects, or all of them if it is empty. A failure counts if the same test fails again, by
// itself, or if every run of the whole package fails: one that comes once may be the
// machine's. by names what failed; it is what the compiler said if it does not compile.
func (t *trial) judge(pkg, only string) (compiles bool, by string, err error) {
	binary, output, err := t.compile(pkg)
	var exit *exec.ExitError
	switch {
	case t.ctx.Err() != nil:
		return false, "", t.ctx.Err()
	case errors.As(err, &exit):
		return false, string(output), nil
	case err != nil:
		return false, "", err
	}
	for range tries {
		failed, output, err := t.test(binary, pkg, only, testTimeout)
		if err != nil || !failed {
			return true, "", err
		}
		test := ""
		by, test = catcher(pkg, output)
		if test == "" {
			return true, by, nil
		}
		if failed, _, err = t.test(binary, pkg, "^"+test+"$", testTimeout); err != nil || failed {
			return true, by, err
		}
	}
	return true, by, nil
}

var (
	failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	hanging    = regexp.MustCompile(`running tests:\n\s+(\S+)`)
	broken     = regexp.MustCompile(`(?m)^(panic|fatal error): .*$`)
)

// catcher names what failed: the test, if possible with the row, and the test as a
// name to run it by; none if the failure is not a test's.
func catcher(pkg string, output []byte) (by, test string) {
	for _, found := range failedTest.FindAllSubmatch(output, -1) {
		name := string(found[1])
		if by != "" && !strings.HasPrefix(name, by+"/") {
			break
		}
		by = name
	}
	hang := bytes.Contains(output, []byte("panic: test timed out"))
	switch what := broken.Find(output); {
	case hang:
		if found := hanging.FindSubmatch(output); found != nil {
			by = " " + string(found[1])
		} else {
			by = ""
		}
		return pkg + by + " (hang: test timeout)", ""
	case by == "" && what != nil:
		return pkg + " (" + string(what) + ")", ""
	case by == "":
		return pkg, ""
	}
	test, _, _ = strings.Cut(by, "/")
	return pkg + " " + by, test
}

// compile makes the test binary of a package.
func (t *trial) compile(pkg string) (binary string, output []byte, err error) {
	binary = filepath.Join(t.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
	cmd := exec.CommandContext(t.ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, "./"+pkg)
	cmd.Dir = t.module
	output, err = t.command(cmd)
	return binary, output, err
}

// processes is the package whose tests are of real processes, which -short leaves out.
const processes = "tests/processes"

// test runs tests of a binary in the folder of their package: all of them if only is empty.
func (t *trial) test(binary, pkg, only, timeout string, env ...string) (failed bool, output []byte, err error) {
	args := []string{"-test.v", "-test.count=1", "-test.failfast", "-test.timeout=" + timeout}
	if pkg != processes {
		args = append(args, "-test.short")
	}
	if only != "" {
		args = append(args, "-test.run="+only)
	}
	cmd := exec.CommandContext(t.ctx, binary, args...)
	cmd.Dir, cmd.Env = t.path(pkg), env
	output, err = t.command(cmd)
	var exit *exec.ExitError
	switch {
	case t.ctx.Err() != nil:
		return false, nil, t.ctx.Err()
	case err == nil:
		return false, output, nil
	case !errors.As(err, &exit) || !exit.Exited():
		return false, nil, fmt.Errorf("the tests of %s could not be run: %w\n%s", pkg, err, output)
	}
	if t.verbose {
		t.say("%s\n", bytes.TrimSpace(output))
	}
	return true, output, nil
}

func (t *trial) command(cmd *exec.Cmd) ([]byte, error) {
	if t.verbose {
		t.say("# %s\n", strings.Join(cmd.Args, " "))
	}
	cmd.Env = slices.Concat(t.env, cmd.Env) // never append: trials run side by side
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
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || rel == "bin" || rel == "data"):
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
