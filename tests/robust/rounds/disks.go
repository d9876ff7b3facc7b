package rounds

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// needDisk is what scenarios of disks that forget need.
const needDisk = "the disk helper (root or fusermount, /dev/fuse)"

func (s *Site) diskFaults() []lab.Scenario {
	return []lab.Scenario{
		{Name: "power-cut-store", Needs: needDisk, Run: s.powerCut(1)},
		{Name: "power-cut-two-stores", Needs: needDisk, Run: s.powerCut(2)},
		{Name: "power-cut-all-stores", Needs: needDisk, Alone: true, Run: s.powerCut(3)},
		{Name: "fsync-fails", Needs: needDisk, Run: s.failingDisk("eio")},
		{Name: "disk-full-in-a-commit", Needs: needDisk, Run: s.failingDisk("full")},
		{Name: "disk-nearly-full", Needs: needDisk, Run: s.nearlyFull},
		{Name: "slow-fsync", Needs: needDisk, Run: s.slowDisk},
		{Name: "damaged-database", Run: s.damage},
	}
}

// tell gives one order to the disks of stores.
func (s *Site) tell(stores []string, format string, args ...any) (answers []string, err error) {
	for _, name := range stores {
		answer, failed := s.disks[name].tell(format, args...)
		answers, err = append(answers, answer), errors.Join(err, failed)
	}
	return answers, err
}

// powerCut ends stores as the loss of power would: what was not fsynced is gone, or
// there in part.
func (s *Site) powerCut(count int) func(context.Context, *lab.Scene) error {
	return func(ctx context.Context, sc *lab.Scene) error {
		victims, err := sc.Victims(ctx, count, store)
		if err != nil {
			return err
		}
		order := []string{"forget", "tear"}[sc.Random.IntN(2)]
		seed, wait := sc.Random.Uint32(), sc.Between(0, 2*time.Second)
		if err := s.killInFsync(ctx, sc, victims); err != nil {
			return err
		}
		lost, err := s.tell(victims, "%s %d", order, seed)
		if err != nil {
			return err
		}
		sc.Note("power cut of %v, un-fsynced writes: %s (%s)", victims, order, strings.Join(lost, "; "))
		sc.Rest(ctx, wait)
		return sc.StartAgain(ctx, victims)
	}
}

// killInFsync kills while commits are most likely under way: an fsync takes long for a
// moment, and confirms nothing to a process that is killed in it.
func (s *Site) killInFsync(ctx context.Context, sc *lab.Scene, victims []string) error {
	_, slow := s.tell(victims, "slow %d", 60)
	sc.Rest(ctx, sc.Between(60*time.Millisecond, 300*time.Millisecond))
	killed := sc.Break(ctx, victims, "SIGKILL in an fsync", sc.Kill)
	_, fast := s.tell(victims, "slow %d", 0)
	return errors.Join(slow, killed, fast)
}

// one draws a single store; nil if other scenarios have all of them.
func (s *Site) one(ctx context.Context, sc *lab.Scene) (victims []string, p *localcluster.Process, err error) {
	victims, err = sc.Victims(ctx, 1, store)
	if len(victims) > 0 {
		p = s.Own.Process(victims[0])
	}
	return victims, p, err
}

// failingDisk makes commits of one store fail. Its process must end and say why; what it
// had written without an fsync is lost, as the system may drop it.
func (s *Site) failingDisk(how string) func(context.Context, *lab.Scene) error {
	return func(ctx context.Context, sc *lab.Scene) error {
		victims, p, err := s.one(ctx, sc)
		if p == nil {
			return err
		}
		sc.Note("%s of %s", how, p.Name)
		d, since := s.disks[p.Name], logged(p)
		if _, err := d.tell("%s on", how); err != nil {
			return err
		}
		unexpected := s.ends(ctx, p, since, "store cannot go on")
		if p.Running() {
			_ = p.Kill()
		}
		_, off := d.tell("%s off", how)
		_, forget := d.tell("forget %d", sc.Random.Uint32())
		return errors.Join(unexpected, off, forget, sc.StartAgain(ctx, victims))
	}
}

// ends waits until a process ends by itself, and checks that it failed and has said why
// since its log was so long. A run that is told to end waits for nothing and says nothing.
func (s *Site) ends(ctx context.Context, p *localcluster.Process, since int64, why string) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
	case <-time.After(s.Patience):
		return fmt.Errorf("%w: %s still runs after %v, want an end with %q", lab.ErrUnexpected, p.Name, s.Patience, why)
	}
	if !p.Failed() || !strings.Contains(said(p, since), why) {
		return fmt.Errorf("%w: %s ended with %q, want %q", lab.ErrUnexpected, p.Name, lastLines(p, 8), why)
	}
	return nil
}

// nearlyFull lets a store refuse writes for a while. It must live, and go on by itself.
func (s *Site) nearlyFull(ctx context.Context, sc *lab.Scene) error {
	victims, p, err := s.one(ctx, sc)
	if p == nil {
		return err
	}
	wait := sc.Between(time.Second, 5*time.Second)
	sc.Note("%s has 1 MiB of its disk left for %v", p.Name, wait)
	if _, err := s.tell(victims, "free 1048576"); err != nil {
		return err
	}
	sc.Rest(ctx, wait)
	_, err = s.tell(victims, "free 1073741824")
	if !p.Running() {
		err = errors.Join(err, fmt.Errorf("%w: %s ended with %q for want of room", lab.ErrUnexpected, p.Name, p.Exit()), sc.StartAgain(ctx, victims))
	}
	return err
}

func (s *Site) slowDisk(ctx context.Context, sc *lab.Scene) error {
	victims, err := sc.Victims(ctx, 1+sc.Random.IntN(3), store)
	if err != nil {
		return err
	}
	ms, wait := 20+sc.Random.IntN(600), sc.Outage()
	sc.Note("each fsync of %v takes %d ms more for %v", victims, ms, wait)
	_, slow := s.tell(victims, "slow %d", ms)
	sc.Rest(ctx, wait)
	_, fast := s.tell(victims, "slow %d", 0)
	return errors.Join(slow, fast)
}

// damage flips bits or zeroes pages of one store's database while it is down. It must
// not start from it, and say so. Then it gets its own, undamaged file back: an older
// state it must never get.
func (s *Site) damage(ctx context.Context, sc *lab.Scene) error {
	victims, p, err := s.one(ctx, sc)
	if p == nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	path := filepath.Join(p.Dir, "store.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	spoilt, what := spoil(sc.Random, whole)
	sc.Note("%s of %s", what, p.Name)
	if err := os.WriteFile(path, spoilt, 0o600); err != nil {
		return err
	}
	since := logged(p)
	if err := p.Start(); err != nil {
		return err
	}
	unexpected := s.ends(ctx, p, since, "database is damaged")
	if p.Running() {
		// It must not be given the old file any more: it may have voted since.
		return errors.Join(unexpected, fmt.Errorf("%s runs with %s", p.Name, what))
	}
	sc.Rest(ctx, sc.Between(0, time.Second))
	return errors.Join(unexpected, writeSynced(path, whole), sc.StartAgain(ctx, victims))
}

const (
	page   = 4096
	sector = 512
)

// spoil damages so many pages that some of them are in use: bits of all, or whole ones,
// among them the roots that the two meta pages name.
func spoil(random *rand.Rand, whole []byte) (spoilt []byte, what string) {
	spoilt = slices.Clone(whole)
	if random.IntN(2) == 0 {
		for at := 0; at+sector <= len(spoilt); at += sector {
			spoilt[at+random.IntN(sector)] ^= 1 << random.IntN(8)
		}
		return spoilt, "a bit flipped in every 512 bytes"
	}
	const rootAt = 32 // of the number of the root page in a meta page of bbolt
	var roots []uint64
	for meta := range 2 {
		if at := meta*page + rootAt; at+8 <= len(whole) {
			roots = append(roots, binary.LittleEndian.Uint64(whole[at:]))
		}
	}
	for at := 2 * page; at+page <= len(spoilt); at += page {
		if random.IntN(4) > 0 || slices.Contains(roots, uint64(at/page)) {
			clear(spoilt[at : at+page])
		}
	}
	return spoilt, "three of four pages zeroed"
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}
