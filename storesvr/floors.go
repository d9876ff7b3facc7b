package storesvr

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// Overdrawn bounds two distances: how far a borrowing node hands out snowflake IDs beyond its
// clock, and how far correct clocks are apart. WindowsOver keeps that much of a floor.
const Overdrawn = 30 * time.Second

// stampFloors gives a restored store the floor of worker ids at its first start. It is on
// disk before the store answers anything: a later start finds it there, and a crash before
// leaves the stamp to the next start.
func stampFloors(cfg Config, db Database, meta *disk.Meta) error {
	if meta.Floors.Stamp == nil {
		return nil
	}
	made := meta.Floors.Made(cfg.wall()())
	commits, err := db.Commit(disk.Update{Floors: &made})
	if err != nil {
		return fmt.Errorf("%w: floor of worker ids: %w", ErrCommit, err)
	}
	meta.Floors, meta.Commits = made, commits
	cfg.Logger.Info("first start after a restore: worker ids are kept back", "store", meta.Name, "until", workerFloor(made.Floors))
	return nil
}

func workerFloor(f quorum.Floors) time.Time { return time.UnixMilli(int64(f.Worker)).UTC() }

// keptBack returns the time by which the floor of worker ids is ahead of the store's clock.
func keptBack(f quorum.Floors, now time.Time) time.Duration {
	if f.Worker == 0 {
		return 0
	}
	return max(0, workerFloor(f).Sub(now))
}

// windowsOver takes an operator's word that no process from before the restore holds a
// worker id or a window of one: the floor of worker ids falls to a moment beyond the
// store's clock. It never rises; durable when it returns nil. Errors:
// seq.ErrForeignCluster, seq.ErrStaleEra, seq.ErrBadArgument for no reason,
// seq.ErrStoreFull.
func (r *replica) windowsOver(ctx context.Context, cluster string, era seq.Era, reason string) error {
	c := r.core
	var lowered *disk.Floors
	err := r.writer.submit(ctx, &write{
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if err := c.members.sameCluster(cluster, era); err != nil {
				return err
			}
			if reason == "" {
				return fmt.Errorf("%w: no reason, expected why nobody holds a window from before the restore", seq.ErrBadArgument)
			}
			floors := c.acceptor.Floors()
			if keptBack(floors, c.wall()) <= Overdrawn {
				return nil
			}
			if full {
				return seq.ErrStoreFull
			}
			floors.Worker = uint64(max(0, c.wall().Add(Overdrawn).UnixMilli()))
			u.Floors = &disk.Floors{Floors: floors}
			lowered = u.Floors
			return nil
		},
		committed: func() {
			if lowered != nil && lowered.Worker < c.acceptor.Floors().Worker {
				c.log.Warn("worker ids are given out again: nobody is said to hold a window from before the restore",
					"reason", reason, "kept until", workerFloor(c.acceptor.Floors()), "now from", workerFloor(lowered.Floors))
				c.acceptor.SetFloors(lowered.Floors)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("end the wait for windows at store %s: %w", c.identity.Name, err)
	}
	return nil
}
