package rounds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	storedisk "github.com/seqsvr/seqsvr/storesvr/disk"
)

// copyFaults concern disks of which there are two. Each ends with the replacement of the store, as
// docs/operations.md says.
func (s *Site) copyFaults() []lab.Scenario {
	return []lab.Scenario{
		{Name: "old-disk-put-back", Alone: true, Run: s.oldDisk},
		{Name: "clone-beside-its-store", Alone: true, Run: s.cloneBeside},
	}
}

// poll separates two questions of a scenario, and describing bounds one question.
const (
	poll       = 20 * time.Millisecond
	describing = 5 * time.Second
	hearing    = 3 // leases until a store has heard of another process on its disk
)

// distrusted begins the state of a store whose disk is known to be a copy.
const distrusted = "distrusted"

// errNotYet is a condition that a scenario waits for.
var errNotYet = errors.New("not yet")

// until asks until there is no error. After the site's patience the error is lab.ErrUnexpected. A run that
// is told to end waits for nothing.
func (s *Site) until(ctx context.Context, what string, ask func(ctx context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for last := errNotYet; ; rest(wait, poll) {
		err := ask(wait)
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case wait.Err() != nil:
			return fmt.Errorf("%w: after %v still not: %s: %w", lab.ErrUnexpected, s.Patience, what, last)
		}
		last = err
	}
}

// describe asks a store what it is.
func describe(ctx context.Context, addr string) (quorum.Identity, error) {
	one, err := storeclient.Dial(addr)
	if err != nil {
		return quorum.Identity{}, err
	}
	defer one.Close()
	ctx, cancel := context.WithTimeout(ctx, describing)
	defer cancel()
	return one.Describe(ctx)
}

// votes waits until a store votes, and returns its identity.
func (s *Site) votes(ctx context.Context, addr string) (id quorum.Identity, err error) {
	err = s.until(ctx, addr+" votes", func(ctx context.Context) (err error) {
		if id, err = describe(ctx, addr); err == nil && !id.Voting {
			err = fmt.Errorf("%w: %s", errNotYet, id.State)
		}
		return err
	})
	return id, err
}

// foundOut waits until a store is distrusted. It returns whether the store voted meanwhile.
func (s *Site) foundOut(ctx context.Context, addr string) (voted bool, err error) {
	err = s.until(ctx, addr+" is distrusted", func(ctx context.Context) error {
		id, err := describe(ctx, addr)
		voted = voted || err == nil && id.Voting
		if err == nil && !strings.HasPrefix(id.State, distrusted) {
			err = fmt.Errorf("%w: %s", errNotYet, id.State)
		}
		return err
	})
	return voted, err
}

// oldDisk puts a store's disk back as it was some commits and starts ago. The store must never vote with it.
func (s *Site) oldDisk(ctx context.Context, sc *lab.Scene) error {
	victims, p, err := s.one(ctx, sc)
	if p == nil {
		return err
	}
	old, err := os.MkdirTemp("", "seqsvr-old-disk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(old)
	then, err := s.votes(ctx, p.Addr)
	if err != nil || ctx.Err() != nil {
		return err
	}
	if err := errors.Join(p.Kill(), os.CopyFS(old, os.DirFS(p.Dir)), sc.StartAgain(ctx, victims)); err != nil {
		return err
	}
	_, err = s.votes(ctx, p.Addr)
	err = errors.Join(err, s.until(ctx, "its fellows have heard of more than the copy has", func(ctx context.Context) error {
		return s.heardMore(ctx, p, then)
	}))
	if err != nil || ctx.Err() != nil {
		return err
	}
	sc.Rest(ctx, sc.Between(0, 2*s.cfg.Lease))
	if err := errors.Join(p.Kill(), emptied(p.Dir), os.CopyFS(p.Dir, os.DirFS(old))); err != nil {
		return err
	}
	sc.Note("the disk of %s put back as it was at commit %d of start %d", p.Name, then.Commits, then.BootCount)
	if err := sc.StartAgain(ctx, victims); err != nil {
		return err
	}
	voted, unexpected := s.foundOut(ctx, p.Addr)
	if voted {
		unexpected = errors.Join(unexpected, fmt.Errorf("%w: %s voted with an old disk", lab.ErrUnexpected, p.Name))
	}
	return errors.Join(unexpected, s.replace(ctx, sc, p))
}

// heardMore returns nil once all fellow stores remember a later start and more commits of the store.
func (s *Site) heardMore(ctx context.Context, p *localcluster.Process, than quorum.Identity) error {
	for _, fellow := range s.Own.Processes(store) {
		if fellow == p {
			continue
		}
		id, err := describe(ctx, fellow.Addr)
		if err != nil {
			return err
		}
		// The copy itself commits once at its start.
		if !slices.ContainsFunc(id.Remembered, func(c quorum.Claim) bool {
			return c.Store == than.UUID && c.Boot > than.BootCount && c.Commits > than.Commits+1
		}) {
			return fmt.Errorf("%w: %s remembers %v", errNotYet, fellow.Name, id.Remembered)
		}
	}
	return nil
}

// cloneBeside starts a copy of a store beside it. One part of the allocators reaches the store, the other
// part the copy. One of the two may go on, if the other has promised nothing.
func (s *Site) cloneBeside(ctx context.Context, sc *lab.Scene) error {
	victims, p, err := s.one(ctx, sc)
	if p == nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	clone, err := s.Own.CloneStore(p.Name)
	if err != nil {
		return errors.Join(err, sc.StartAgain(ctx, victims))
	}
	_, before, err := storedisk.Inspect(clone.Dir)
	misled := s.Role(alloc)[:1+sc.Random.IntN(len(s.Role(alloc))-1)]
	for _, a := range misled {
		s.proxies[pair{a.Name, p.Name}].Target(clone.Addr)
	}
	sc.Note("a clone of %s beside it, which %d allocs reach", p.Name, len(misled))
	unexpected := errors.Join(err, clone.Start(), sc.StartAgain(ctx, victims))
	if unexpected == nil {
		unexpected = s.oneIsFoundOut(ctx, p.Addr, clone.Addr)
	}
	voting := s.voting(ctx, p.Addr) || s.voting(ctx, clone.Addr)
	killed := errors.Join(clone.Kill(), p.Kill())
	for _, a := range misled {
		s.proxies[pair{a.Name, p.Name}].Target(p.Addr)
	}
	if line := localcluster.PanicIn(clone.Log); line != "" {
		unexpected = errors.Join(unexpected, fmt.Errorf("%w: the clone: %s", lab.ErrUnexpected, line))
	}
	if voting && unexpected == nil && ctx.Err() == nil {
		unexpected = onePromised(before, p.Dir, clone.Dir)
	}
	return errors.Join(unexpected, killed, os.RemoveAll(clone.Dir), s.replace(ctx, sc, p))
}

// voting reports whether the store at addr votes now.
func (s *Site) voting(ctx context.Context, addr string) bool {
	id, err := describe(ctx, addr)
	return err == nil && id.Voting
}

// oneIsFoundOut waits until one of two processes on one disk is distrusted, and then for some leases, in
// which the other hears of it.
func (s *Site) oneIsFoundOut(ctx context.Context, addrs ...string) error {
	found := func(ctx context.Context) (n int, err error) {
		for _, addr := range addrs {
			id, failed := describe(ctx, addr)
			if err = errors.Join(err, failed); strings.HasPrefix(id.State, distrusted) {
				n++
			}
		}
		return n, err
	}
	err := s.until(ctx, "one of two processes is distrusted", func(ctx context.Context) error {
		if n, err := found(ctx); n == 0 {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	for end := time.Now().Add(hearing * s.cfg.Lease); err == nil && time.Now().Before(end) && ctx.Err() == nil; rest(ctx, poll) {
		if n, _ := found(ctx); n == len(addrs) {
			break
		}
	}
	return err
}

// onePromised returns an error if the registers of both disks have changed. Payloads are left out, because the order
// inside a copy of an exact section is free.
func onePromised(before map[seq.Register]acceptor.State, dirs ...string) error {
	var changed []string
	for _, dir := range dirs {
		_, now, err := storedisk.Inspect(dir)
		if err != nil {
			return err
		}
		for r, state := range now {
			was := before[r]
			state.Payload, was.Payload = nil, nil
			if !reflect.DeepEqual(state, was) {
				changed = append(changed, fmt.Sprintf("%v of %s from %+v to %+v", r, filepath.Base(dir), was, state))
				break
			}
		}
	}
	if len(changed) < len(dirs) {
		return nil
	}
	return fmt.Errorf("%w: one of two processes of a disk votes, and both have promised: %s", lab.ErrUnexpected, strings.Join(changed, "; "))
}

// replace gives a store an empty disk, and has seqctl fill it. A run that is told to end is not given the
// time for it.
func (s *Site) replace(ctx context.Context, sc *lab.Scene, p *localcluster.Process) error {
	if ctx.Err() != nil {
		return nil
	}
	if p.Running() {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	if err := emptied(p.Dir); err != nil {
		return err
	}
	var fellows []string
	for _, n := range s.Role(store) {
		if n.Name != p.Name {
			fellows = append(fellows, n.Addr)
		}
	}
	_, err := s.command(ctx, "storesvr", "init", "--learner", "--join", strings.Join(fellows, ","), "--cluster", s.Own.ClusterID, "--data-dir", p.Dir, "--name", p.Name)
	if err != nil {
		return err
	}
	if err := sc.StartAgain(ctx, []string{p.Name}); err != nil {
		return err
	}
	err = s.until(ctx, p.Name+" is replaced", func(ctx context.Context) error {
		_, err := s.command(ctx, "seqctl", "store", "replace", "--dead", p.Name, "--new", p.Addr, "--stores", strings.Join(fellows, ","), "--addr", s.Addrs(alloc)[0])
		return err
	})
	if err == nil {
		_, err = s.votes(ctx, p.Addr)
	}
	sc.Note("%s replaced", p.Name)
	return errors.Join(err, s.restartAllocs(ctx))
}

// restartAllocs restarts the allocators in order, one after the other. An allocator learns the address of a
// new store from the member list; after its restart it goes through its proxies again.
func (s *Site) restartAllocs(ctx context.Context) error {
	for _, p := range s.Own.Processes(alloc) {
		if ctx.Err() != nil {
			break
		}
		if err := errors.Join(p.Restart(ctx), s.Recovered(ctx)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// emptied removes what a directory holds. The directory stays, because a file system may be mounted there.
func emptied(dir string) error {
	all, err := os.ReadDir(dir)
	for _, entry := range all {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// command runs one of the binaries to its end, and returns what it printed. The error has that too.
func (s *Site) command(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.cfg.Bin, name), args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "SEQ_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
