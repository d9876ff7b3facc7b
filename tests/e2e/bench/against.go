package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/own"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/peers"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// errRevision: the other build cannot be made.
var errRevision = errors.New("other revision")

// compared are the subjects if none are named: what a change must not make slower.
var compared = []string{"next/c64", "next/c512", "batch/1000", "takeover"}

// build is one of the two builds that are compared, with its own cluster.
type build struct {
	name     string
	root     string // of the module, with bin/
	subjects []subject
}

// pair is what one subject gave in both builds, a sample a round.
type pair struct {
	id         string
	here, then []report.Sample
}

// against measures the subjects in this tree and in another revision, in turn, and writes
// the ratios. It changes nothing in the tree but what lies below bin/.
func against(ctx context.Context, out io.Writer, root, revision string, s settings) (err error) {
	f := &field{root: root, settings: s}
	if f.dir, err = os.MkdirTemp(filepath.Join(root, "bin"), "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(f.dir)
	other, remove, err := checkOut(ctx, root, revision, filepath.Join(f.dir, "then"))
	if err != nil {
		return err
	}
	defer remove()
	defer f.end()
	defer f.awake()()
	builds := []*build{{name: "here", root: root}, {name: "then", root: other}}
	for _, b := range builds {
		if err := f.prepare(ctx, b); err != nil {
			return err
		}
	}
	pairs, err := f.turns(ctx, builds[0].subjects, builds[1].subjects)
	if err != nil {
		return err
	}
	return compare(out, revision, pairs)
}

// checkOut puts a revision into a folder and builds it there.
func checkOut(ctx context.Context, root, revision, dir string) (path string, remove func(), err error) {
	run := func(in, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = in
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w %s: %s: %w: %s", errRevision, revision, name, err, out)
		}
		return nil
	}
	if err := run(root, "git", "worktree", "add", "--detach", dir, revision); err != nil {
		return "", nil, err
	}
	remove = func() {
		cmd := exec.Command("git", "worktree", "remove", "--force", dir)
		cmd.Dir = root
		_ = cmd.Run() // the folder goes with the run in any case
	}
	say("building %s", revision)
	if err := run(dir, "make", "build"); err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

// prepare starts the cluster of a build, as far as its subjects need one.
func (f *field) prepare(ctx context.Context, b *build) error {
	wanted := func(list []subject) (out []subject) {
		for _, s := range list {
			if f.settings.wants(s.ID) {
				out = append(out, s)
			}
		}
		return out
	}
	dir := filepath.Join(f.dir, b.name+"-data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if len(wanted(ownSubjects(nil)))+len(wanted(frontSubjects(nil))) > 0 {
		say("starting 3 stores, 1 allocator, 1 router of %s", b.name)
		c, err := own.Start(ctx, filepath.Join(b.root, "bin"), filepath.Join(dir, "cluster"), own.Size{Stores: 3, Allocs: 1, Modes: slices.ContainsFunc(wanted(ownSubjects(nil)), hasMode)})
		if err != nil {
			return err
		}
		f.ends = append(f.ends, c.Close)
		if err := c.Ask(ctx, "namespace", "add", namespace, "--layout", namespaceLayout); err != nil {
			return err
		}
		b.subjects = wanted(ownSubjects(c))
		if len(wanted(frontSubjects(nil))) > 0 {
			front, err := peers.RedisFront(c.Role(localcluster.RoleRouter)[0].RESP, "seq:", c.Pids())
			if err != nil {
				return err
			}
			b.subjects = append(b.subjects, wanted(frontSubjects(front))...)
		}
	}
	if len(wanted(goSubjects(nil))) > 0 {
		g, err := own.Compile(ctx, b.root, "./tests/bench", dir)
		if err != nil {
			return err
		}
		b.subjects = append(b.subjects, wanted(goSubjects(g))...)
	}
	return nil
}

// turns measures each subject of both builds once a round, the one first that was second in
// the round before.
func (f *field) turns(ctx context.Context, here, then []subject) ([]pair, error) {
	pairs := make([]pair, len(here))
	for round := range f.settings.runs {
		for i := range here {
			p := &pairs[i]
			p.id = here[i].ID
			sides := []func() error{
				func() error { return f.once(ctx, here[i], &p.here) },
				func() error { return f.once(ctx, then[i], &p.then) },
			}
			for k := range sides {
				if err := sides[(k+round)%2](); err != nil {
					return nil, err
				}
			}
			last := func(list []report.Sample) float64 { return speed(list[len(list)-1]) }
			say("round %d/%d  %-18s %.3f", round+1, f.settings.runs, p.id, last(p.here)/last(p.then))
		}
	}
	return pairs, nil
}

func (f *field) once(ctx context.Context, s subject, into *[]report.Sample) error {
	got, err := s.measure(ctx, f.settings.duration)
	*into = append(*into, got)
	return err
}

// speed is more for what is faster: a rate, or the inverse of a time in microseconds.
func speed(s report.Sample) float64 {
	if s.Rate > 0 {
		return s.Rate
	}
	return 1e6 / s.P50
}

// compare writes a line a subject: the medians, their ratio, and the ratios of the rounds.
func compare(out io.Writer, revision string, pairs []pair) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "subject\there\t%s\tratio\tof the rounds: median\tleast\tmost\t\n", revision)
	for _, p := range pairs {
		var ratios []float64
		for i := range p.here {
			ratios = append(ratios, speed(p.here[i])/speed(p.then[i]))
		}
		here, then := report.Median(p.here, speed), report.Median(p.then, speed)
		fmt.Fprintf(w, "%s\t%.4g/s\t%.4g/s\t%.3f\t%.3f\t%.3f\t%.3f\t\n", p.id, here, then, here/then, report.Median(ratios, func(x float64) float64 { return x }), slices.Min(ratios), slices.Max(ratios))
	}
	return w.Flush()
}

// hasMode says whether a subject needs an exact or a strict space, which builds before v0.2 do not know.
func hasMode(s subject) bool {
	return strings.HasPrefix(s.ID, "exact/") || strings.HasPrefix(s.ID, "strict/") || strings.HasPrefix(s.ID, "tickets/")
}
