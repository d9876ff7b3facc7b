package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the tests of one package, compiled with all changes.
type suite struct {
	pkg, binary, dir string
	tests            []test
	cache            string // file
	mu               sync.Mutex
	known            map[string]string // by key of the place: what killed it, or nothing
}

type test struct {
	name    string
	took    time.Duration
	reached map[int]bool
}

// survey runs each test by itself on the code as it is, and notes which places it comes by.
func (s *suite) survey(ctx context.Context, out io.Writer, dir, cache string, places int) error {
	listed, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", s.pkg).Output()
	if err != nil {
		return err
	}
	s.dir = strings.TrimSpace(string(listed))
	if err := s.recall(cache); err != nil {
		return err
	}
	names, err := exec.CommandContext(ctx, s.binary, "-test.list", "^(Test|Fuzz)").Output()
	if err != nil {
		return err
	}
	reached := map[int]bool{}
	began := time.Now()
	for _, name := range strings.Fields(string(names)) {
		file := filepath.Join(dir, "reached")
		start := time.Now()
		_, failed, err := s.run(ctx, []string{name}, time.Minute*3, "MUTATE_REACHED="+file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.Remove(file)
		} else if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		if failed {
			fmt.Fprintf(out, "%s %s fails without a change and is left out\n", s.pkg, name)
			continue
		}
		t := test{name: name, took: time.Since(start), reached: map[int]bool{}}
		for _, word := range strings.Fields(string(text)) {
			id, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			t.reached[id], reached[id] = true, true
		}
		s.tests = append(s.tests, t)
	}
	slices.SortStableFunc(s.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	fmt.Fprintf(out, "%s: %d tests in %.0f s come by %d of %d places\n", s.pkg, len(s.tests), time.Since(began).Seconds(), len(reached), places)
	return nil
}

// recall reads what is known of this very binary.
func (s *suite) recall(folder string) error {
	s.known = map[string]string{}
	binary, err := os.ReadFile(s.binary)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(binary)
	s.cache = filepath.Join(folder, hex.EncodeToString(sum[:16])+".json")
	text, err := os.ReadFile(s.cache)
	if errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(s.cache), 0o700)
	} else if err != nil {
		return err
	}
	return json.Unmarshal(text, &s.known)
}

func (s *suite) remember(p *place, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[p.key] = by
	if text, err := json.Marshal(s.known); err == nil {
		_ = os.WriteFile(s.cache, text, 0o600)
	}
}

var failedTest = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

func (s *suite) run(ctx context.Context, tests []string, limit time.Duration, env string) (by string, failed bool, err error) {
	cmd := exec.CommandContext(ctx, s.binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run=^("+strings.Join(tests, "|")+")$")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), env)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case err == nil:
		return "", false, nil
	case !errors.As(err, &exit):
		return "", false, err
	case bytes.Contains(output, []byte("panic: test timed out")):
		return "hang", true, nil
	}
	if found := failedTest.FindSubmatch(output); found != nil {
		return string(found[1]), true, nil
	}
	return "panic", true, nil
}

// judge says what kills the change: the cheap tests that come by are asked first.
func (s *suite) judge(ctx context.Context, p *place) (by string, err error) {
	s.mu.Lock()
	by, known := s.known[p.key]
	s.mu.Unlock()
	if known {
		return by, nil
	}
	var stages [3][]string
	var cost [3]time.Duration
	for _, t := range s.tests {
		if !t.reached[p.id] {
			continue
		}
		i := 2
		if t.took < 100*time.Millisecond {
			i = 0
		} else if t.took < time.Second {
			i = 1
		}
		stages[i], cost[i] = append(stages[i], t.name), cost[i]+t.took
	}
	for i, names := range stages {
		if len(names) == 0 {
			continue
		}
		by, failed, err := s.run(ctx, names, 20*time.Second+6*cost[i], "MUTATE_ON="+strconv.Itoa(p.id))
		if err != nil {
			return "", err
		}
		if failed {
			s.remember(p, by)
			return by, nil
		}
	}
	s.remember(p, "")
	return "", nil
}

// tally counts what became of the changes.
type tally struct {
	out    io.Writer
	killed bool // print them
	known  explained

	mu                              sync.Mutex
	tried, kills, hangs, expl, left int
	began                           time.Time
}

func (t *tally) tryAll(ctx context.Context, places []*place, suites []*suite, jobs int) {
	t.began = time.Now()
	next := make(chan *place)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for p := range next {
				by, err := "", error(nil)
				_, known := t.known[p.key]
				for i := 0; i < len(suites) && by == "" && !known && err == nil; i++ {
					by, err = suites[i].judge(ctx, p)
				}
				if ctx.Err() == nil {
					t.note(p, by, known, err, len(places))
				}
			}
		})
	}
	for _, p := range places {
		next <- p
	}
	close(next)
	workers.Wait()
}

func (t *tally) note(p *place, by string, known bool, err error, of int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried++
	switch {
	case err != nil:
		t.left++
		fmt.Fprintf(t.out, "could not be tried: %s: %v\n", p.key, err)
	case known:
		t.expl++
	case by == "":
		t.left++
		fmt.Fprintf(t.out, "SURVIVED line %d: %s\n", p.line, p.key)
	default:
		t.kills++
		if by == "hang" {
			t.hangs++
		}
		if t.killed {
			fmt.Fprintf(t.out, "killed by %s: %s\n", by, p.key)
		}
	}
	if t.tried%100 == 0 {
		fmt.Fprintf(t.out, "[%d/%d] after %.0f s\n", t.tried, of, time.Since(t.began).Seconds())
	}
}

func (t *tally) summary(pkg string) error {
	fmt.Fprintf(t.out, "%s: %d changes: %d killed (%d by a hang), %d explained, %d survived, in %.0f s\n",
		pkg, t.tried, t.kills, t.hangs, t.expl, t.left, time.Since(t.began).Seconds())
	if t.left > 0 {
		return errSurvived
	}
	return nil
}

// pick draws so many places.
func pick(places []*place, most int, seed uint64) []*place {
	if most == 0 || most >= len(places) {
		return places
	}
	some := slices.Clone(places)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some[:most]
}
