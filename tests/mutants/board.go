package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// board is the copy with every mutant compiled in that can be switched on at run time. A
// package is compiled once for all of its mutants, and each test runs once without a mutant
// to find the mutants that it reaches.
type board struct {
	*trial
	numbers  map[string]int    // of the mutants, by text; one without a number is tried alone
	last     map[string]string // the tests that caught the mutants the last time
	jobs     int
	patience time.Duration // with tests that a mutant makes wait, beside ten times what they take
	cache    string        // folder that keeps the results of tests without a mutant

	mu     sync.Mutex // of suites
	suites map[string]*suite
}

func (l *lab) board(todo []mutant, last map[string]string, jobs int, cache string) (*board, error) {
	overlay, numbers, err := l.switches(todo)
	if err != nil {
		return nil, err
	}
	t, err := l.trial(overlay)
	if err != nil {
		return nil, err
	}
	if err := t.builds(overlay, numbers); err != nil {
		return nil, err
	}
	return &board{trial: t, numbers: numbers, last: last, jobs: jobs, patience: 30 * time.Second, cache: cache, suites: map[string]*suite{}}, nil
}

var mutantFile = regexp.MustCompile(`\bmutant(\d+)\.go:`)

// builds returns an error that names the mutants that do not compile.
func (t *trial) builds(overlay map[string]string, numbers map[string]int) error {
	args := []string{"build"}
	for file := range overlay {
		if dir := "./" + path.Dir(file); !slices.Contains(args, dir) {
			args = append(args, dir)
		}
	}
	if len(args) == 1 {
		return nil
	}
	if len(args) == 2 {
		args = slices.Insert(args, 1, "-o", os.DevNull)
	}
	cmd := exec.CommandContext(t.ctx, "go", args...)
	cmd.Dir = t.module
	output, err := t.command(cmd)
	if err == nil {
		return nil
	}
	var which []string
	for m, n := range numbers {
		if slices.ContainsFunc(mutantFile.FindAllSubmatch(output, -1), func(found [][]byte) bool { return string(found[1]) == strconv.Itoa(n) }) {
			which = append(which, "mutant "+m+" does not compile")
		}
	}
	slices.Sort(which)
	return fmt.Errorf("%s: %w\n%s", strings.Join(which, ", "), err, output)
}

// try returns the verdict on a mutant: from its switch if a test fails by it, and else from
// the packages compiled for it alone.
func (b *board) try(m mutant, simulate bool) (verdict, error) {
	by, err := b.switchOn(m)
	if err != nil || by != "" && !m.sim && !simulate {
		return verdict{by: by}, err
	}
	return b.lab.try(m, simulate)
}

// switchOn names the test that fails with the mutant on. It asks the test that caught it the
// last time first, and then the tests that reach it.
func (b *board) switchOn(m mutant) (by string, err error) {
	n := b.numbers[m.String()]
	if n == 0 {
		return "", nil
	}
	for _, pkg := range m.in {
		name, ok := strings.CutPrefix(b.last[m.String()], pkg+" ")
		if !ok {
			continue
		}
		s, err := b.suite(pkg)
		if err != nil {
			return "", err
		}
		if t, err := s.test(testName(name)); err != nil {
			return "", err
		} else if t.Passes {
			if by, err = s.fails(n, []*test{t}); err != nil || by != "" {
				return by, err
			}
		}
	}
	for _, pkg := range m.in {
		s, err := b.suite(pkg)
		if err != nil {
			return "", err
		}
		if by, err = s.judge(n); err != nil || by != "" {
			return by, err
		}
	}
	return "", nil
}

// testName is the function of a test that is named with its row, and with a hang.
func testName(by string) string {
	by, _, _ = strings.Cut(by, " ")
	by, _, _ = strings.Cut(by, "/")
	return by
}

// suite is the tests of one package on the board.
type suite struct {
	b           *board
	pkg, binary string
	file        string // of the cache
	built       sync.Once
	err         error

	mu    sync.Mutex
	tests map[string]*test

	surveyed  sync.Once
	surveyErr error
	order     []*test // that pass, quick ones first
}

// test is a test without a mutant.
type test struct {
	once    sync.Once
	err     error
	name    string
	Passes  bool
	Took    time.Duration
	Reached map[int]bool
}

func (b *board) suite(pkg string) (*suite, error) {
	b.mu.Lock()
	s := b.suites[pkg]
	if s == nil {
		s = &suite{b: b, pkg: pkg, tests: map[string]*test{}}
		b.suites[pkg] = s
	}
	b.mu.Unlock()
	s.built.Do(func() { s.err = s.build() })
	return s, s.err
}

func (s *suite) build() error {
	binary, output, err := s.b.compile(s.pkg)
	if s.binary = binary; err != nil {
		return fmt.Errorf("%s with its mutants: %w\n%s", s.pkg, err, output)
	}
	if s.b.cache == "" {
		return nil
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	s.file = filepath.Join(s.b.cache, hex.EncodeToString(sum[:16])+".json")
	if data, err = os.ReadFile(s.file); errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(s.b.cache, 0o700)
	} else if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.tests); err != nil {
		return err
	}
	for name, t := range s.tests {
		t.name = name
		t.once.Do(func() {})
	}
	return nil
}

// keep writes down the tests that pass.
func (s *suite) keep() error {
	if s.file == "" {
		return nil
	}
	pass := map[string]*test{}
	for _, t := range s.order {
		pass[t.name] = t
	}
	data, err := json.Marshal(pass)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, data, 0o600)
}

// test returns what a test does without a mutant. A test that fails may try again.
func (s *suite) test(name string) (*test, error) {
	s.mu.Lock()
	t := s.tests[name]
	if t == nil {
		t = &test{name: name}
		s.tests[name] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.err = s.plain(t) })
	return t, t.err
}

func (s *suite) plain(t *test) error {
	dir, err := os.MkdirTemp(s.b.dir, "reached-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "reached")
	for range tries {
		reached := map[int]bool{}
		began := time.Now()
		failed, output, err := s.run([]string{t.name}, testTimeout, "MUTANT_REACHED="+file)
		if err != nil {
			return err
		}
		if failed {
			s.b.say("%s %s fails with no mutant on\n", s.pkg, t.name)
			continue
		}
		if !strings.Contains(string(output), "=== RUN   "+t.name) {
			return nil // it has gone
		}
		t.Passes, t.Took = true, time.Since(began)
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				reached[n] = true
			}
		}
		t.Reached = reached
		return nil
	}
	return nil
}

// survey runs every test of the package without a mutant.
func (s *suite) survey() error {
	cmd := exec.CommandContext(s.b.ctx, s.binary, "-test.list=^(Test|Fuzz|Example)")
	cmd.Dir = s.b.path(s.pkg)
	list, err := s.b.command(cmd)
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w\n%s", s.pkg, err, list)
	}
	names := strings.Fields(string(list))
	next := make(chan string)
	errs := make([]error, s.b.jobs)
	var workers sync.WaitGroup
	for i := range s.b.jobs {
		workers.Go(func() {
			for name := range next {
				if _, err := s.test(name); err != nil {
					errs[i] = err
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, name := range names {
		if t, err := s.test(name); err == nil && t.Passes {
			s.order = append(s.order, t)
		}
	}
	slices.SortStableFunc(s.order, func(a, b *test) int { return cmp.Compare(a.Took, b.Took) })
	return s.keep()
}

// group has the bounds on the time of the tests that run in one process.
var group = []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second}

// judge asks the tests that reach the mutant: the quick ones together, the slow ones one by
// one.
func (s *suite) judge(n int) (by string, err error) {
	s.surveyed.Do(func() { s.surveyErr = s.survey() })
	if s.surveyErr != nil {
		return "", s.surveyErr
	}
	stages := make([][]*test, len(group))
	for _, t := range s.order {
		if !t.Reached[n] {
			continue
		}
		at := slices.IndexFunc(group, func(most time.Duration) bool { return t.Took < most })
		if at < 0 {
			stages = append(stages, []*test{t})
		} else {
			stages[at] = append(stages[at], t)
		}
	}
	for _, tests := range stages {
		if len(tests) == 0 {
			continue
		}
		if by, err = s.fails(n, tests); err != nil || by != "" {
			return by, err
		}
	}
	return "", nil
}

// fails names the test that fails with the mutant on, and fails again.
func (s *suite) fails(n int, tests []*test) (by string, err error) {
	on := "MUTANT_ON=" + strconv.Itoa(n)
	failed, output, err := s.run(names(tests), s.limit(tests), on)
	if err != nil || !failed {
		return "", err
	}
	by, name := catcher(s.pkg, output)
	if name == "" && len(tests) > 1 {
		for _, t := range tests {
			if by, err := s.fails(n, []*test{t}); err != nil || by != "" {
				return by, err
			}
		}
		return "", nil
	}
	if name == "" {
		name = tests[0].name
		_, how, _ := strings.Cut(by, "(")
		by = strings.TrimSuffix(s.pkg+" "+name+" ("+how, " (")
	}
	if failed, _, err = s.run([]string{name}, s.limit(tests), on); err != nil || !failed {
		return "", err
	}
	return by, nil
}

func names(tests []*test) (all []string) {
	for _, t := range tests {
		all = append(all, t.name)
	}
	return all
}

// limit ends tests that a mutant makes wait for ever.
func (s *suite) limit(tests []*test) string {
	most := s.b.patience
	for _, t := range tests {
		most += 10 * t.Took
	}
	return most.String()
}

func (s *suite) run(tests []string, limit, env string) (failed bool, output []byte, err error) {
	return s.b.test(s.binary, s.pkg, "^("+strings.Join(tests, "|")+")$", limit, env)
}
