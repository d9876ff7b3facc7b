package lab

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

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

var diskFaults = []Fault{
	{Kind: "power cut of one store", Needs: needDisk, Run: powerCut(1)},
	{Kind: "power cut of two stores", Needs: needDisk, Run: powerCut(2)},
	{Kind: "power cut of all stores", Needs: needDisk, Alone: true, Run: powerCut(3)},
	{Kind: "fsync fails", Needs: needDisk, Run: failingDisk("eio")},
	{Kind: "disk full in a commit", Needs: needDisk, Run: failingDisk("full")},
	{Kind: "disk nearly full", Needs: needDisk, Run: nearlyFull},
	{Kind: "slow fsync", Needs: needDisk, Run: slowDisk},
	{Kind: "damaged database", Run: damage},
}

// powerCut ends stores as the loss of power would: what was not fsynced is gone, or
// there in part.
func powerCut(count int) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(count, store)
		order := []string{"forget", "tear"}[r.random.IntN(2)]
		seed, wait := r.random.Uint32(), r.between(0, 2*time.Second)
		if err := r.killInFsync(ctx, victims); err != nil {
			return err
		}
		var lost []string
		for _, p := range victims {
			answer, err := r.disks[p.Name].tell("%s %d", order, seed)
			if err != nil {
				return err
			}
			lost = append(lost, answer)
		}
		r.note("power cut of %v for %v, un-fsynced writes: %s (%s)", names(victims), wait, order, strings.Join(lost, "; "))
		r.rest(ctx, wait)
		return startAgain(victims)
	}
}

// killInFsync kills while commits are most likely under way: an fsync takes long for a
// moment, and confirms nothing to a process that is killed in it.
func (r *round) killInFsync(ctx context.Context, victims []*localcluster.Process) error {
	slow := func(ms int) error {
		return each(victims, func(p *localcluster.Process) error { _, err := r.disks[p.Name].tell("slow %d", ms); return err })
	}
	err := slow(60)
	r.rest(ctx, r.between(60*time.Millisecond, 300*time.Millisecond))
	return errors.Join(err, each(victims, (*localcluster.Process).Kill), slow(0))
}

// failingDisk makes commits of one store fail. Its process must end and say why; what it
// had written without an fsync is lost, as the system may drop it.
func failingDisk(how string) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims := r.take(1, store)
		if len(victims) == 0 {
			return nil
		}
		p := victims[0]
		r.note("%s of %s", how, p.Name)
		d, since := r.disks[p.Name], logged(p)
		if _, err := d.tell("%s on", how); err != nil {
			return err
		}
		unexpected := r.ends(ctx, p, since, "store cannot go on")
		if p.Running() {
			_ = p.Kill()
		}
		_, off := d.tell("%s off", how)
		_, forget := d.tell("forget %d", r.random.Uint32())
		return errors.Join(unexpected, off, forget, startAgain(victims))
	}
}

// ends waits until a process ends by itself, and checks that it failed and has said why
// since its log was so long. A run that is told to end waits for nothing and says nothing.
func (r *round) ends(ctx context.Context, p *localcluster.Process, since int64, why string) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.Done():
	case <-time.After(r.cfg.Patience):
		return fmt.Errorf("%w: %s still runs after %v, want an end with %q", ErrUnexpected, p.Name, r.cfg.Patience, why)
	}
	if !p.Failed() || !strings.Contains(said(p, since), why) {
		return fmt.Errorf("%w: %s ended with %q, want %q", ErrUnexpected, p.Name, r.lastLines(p.Name, 8), why)
	}
	return nil
}

// nearlyFull lets a store refuse writes for a while. It must live, and go on by itself.
func nearlyFull(ctx context.Context, r *round) error {
	victims := r.take(1, store)
	if len(victims) == 0 {
		return nil
	}
	p, wait := victims[0], r.between(time.Second, 5*time.Second)
	r.note("%s has 1 MiB of its disk left for %v", p.Name, wait)
	d := r.disks[p.Name]
	if _, err := d.tell("free 1048576"); err != nil {
		return err
	}
	r.rest(ctx, wait)
	_, err := d.tell("free 1073741824")
	if !p.Running() {
		err = errors.Join(err, fmt.Errorf("%w: %s ended with %q for want of room", ErrUnexpected, p.Name, p.Exit()), startAgain(victims))
	}
	return err
}

func slowDisk(ctx context.Context, r *round) error {
	victims, ms, wait := r.take(1+r.random.IntN(3), store), 20+r.random.IntN(600), r.outage()
	r.note("each fsync of %v takes %d ms more for %v", names(victims), ms, wait)
	set := func(ms int) error {
		return each(victims, func(p *localcluster.Process) error { _, err := r.disks[p.Name].tell("slow %d", ms); return err })
	}
	err := set(ms)
	r.rest(ctx, wait)
	return errors.Join(err, set(0))
}

// damage flips bits or zeroes pages of one store's database while it is down. It must
// not start from it, and say so. Then it gets its own, undamaged file back: an older
// state it must never get.
func damage(ctx context.Context, r *round) error {
	victims := r.take(1, store)
	if len(victims) == 0 {
		return nil
	}
	p := victims[0]
	if err := p.Kill(); err != nil {
		return err
	}
	path := filepath.Join(p.Dir, "store.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	spoilt, what := spoil(r.random, whole)
	r.note("%s of %s", what, p.Name)
	if err := os.WriteFile(path, spoilt, 0o600); err != nil {
		return err
	}
	since := logged(p)
	if err := p.Start(); err != nil {
		return err
	}
	unexpected := r.ends(ctx, p, since, "database is damaged")
	if p.Running() {
		// It must not be given the old file any more: it may have voted since.
		return errors.Join(unexpected, fmt.Errorf("%s runs with %s", p.Name, what))
	}
	r.rest(ctx, r.between(0, time.Second))
	return errors.Join(unexpected, writeSynced(path, whole), startAgain(victims))
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
