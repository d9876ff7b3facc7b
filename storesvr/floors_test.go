package storesvr

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// memDisk keeps what a database would of everything but registers.
type memDisk struct {
	noExact
	meta disk.Meta
	fail error // of every commit
}

func (d *memDisk) Commit(u disk.Update) (uint64, error) {
	if d.fail != nil {
		return 0, d.fail
	}
	if u.Floors != nil {
		d.meta.Floors = *u.Floors
	}
	d.meta.Commits++
	return d.meta.Commits, nil
}

func (d *memDisk) Free() (uint64, error) { return 1 << 40, nil }
func (d *memDisk) Close() error          { return nil }

// restored is the disk of a store that was restored and has never run.
func restored(since time.Time) *memDisk {
	return &memDisk{meta: disk.Meta{
		Identity: disk.Identity{Cluster: "c1", UUID: "u-a", Name: "a", Era: 2, N: 1, R: 1, W: 1, Names: []string{"a"}},
		Members:  disk.Members{Version: 1, List: []quorum.Member{{UUID: "u-a", Name: "a"}}},
		Floors:   disk.Floors{Floors: quorum.Floors{Tag: 500}, Stamp: &disk.Stamp{Margin: time.Hour, Since: since}},
	}}
}

// start starts a store on the disk, with that wall clock; it stops with the test.
func (d *memDisk) start(t *testing.T, wall func() time.Time) *replica {
	t.Helper()
	c := clock.NewManual(time.Hour)
	cfg := Config{MaxLease: 10 * time.Second, Clock: c, Wall: wall}.withDefaults()
	r, err := newReplica(cfg, d, d.meta, map[seq.Register]acceptor.State{section: {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close() })
	c.Advance(time.Minute) // it has no fellows to be compared with
	return r
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(moment time.Time) func() time.Time { return func() time.Time { return moment } }

// shown is what the store shows of a worker id and a tag that it has no register of.
func shown(t *testing.T, r *replica) (mark time.Time, tag uint64) {
	t.Helper()
	reply, err := r.Read(t.Context(), quorum.ReadRequest{Ref: r.describe().Ref, Session: alice,
		Registers: []seq.Register{seq.WorkerRegister("ids", 0, 1), seq.TagRegister("orders")}})
	if err != nil {
		t.Fatal(err)
	}
	return time.UnixMilli(int64(reply.Results[0].Max)).UTC(), reply.Results[1].Max
}

func TestARestoredStoreSetsTheFloorOfWorkerIdsByItsOwnClockAtItsFirstStart(t *testing.T) {
	d := restored(noon.AddDate(0, -1, 0))
	r := d.start(t, at(noon))
	want := noon.Add(time.Hour)
	if mark, tag := shown(t, r); !mark.Equal(want) || tag != 500 {
		t.Errorf("shown %v and %d, want %v and 500", mark, tag, want)
	}
	if got := r.describe(); got.kept != time.Hour || got.Floors.Tag != 500 || got.Commits != 1 {
		t.Errorf("described: kept for %v, floors %+v, %d commits", got.kept, got.Floors, got.Commits)
	}
	r.close()
	// On disk before the first answer, so another start changes nothing, whatever its clock.
	for _, clock := range []time.Time{noon.Add(time.Minute), noon.AddDate(0, 0, 3), noon.AddDate(-1, 0, 0)} {
		r := d.start(t, at(clock))
		if mark, _ := shown(t, r); !mark.Equal(want) {
			t.Errorf("started again at %v: %v, want %v", clock, mark, want)
		}
		r.close()
	}
}

func TestAStoreWhoseFloorIsNotOnDiskDoesNotStart(t *testing.T) {
	d := restored(noon)
	d.fail = errors.New("no space left")
	_, err := newReplica(Config{MaxLease: time.Second, Wall: at(noon)}.withDefaults(), d, d.meta, nil)
	if !errors.Is(err, ErrCommit) || d.meta.Floors.Stamp == nil {
		t.Fatalf("got %v, want ErrCommit, and the stamp left to the next start", err)
	}
	d.fail = nil
	if mark, _ := shown(t, d.start(t, at(noon.Add(time.Minute)))); !mark.Equal(noon.Add(61 * time.Minute)) {
		t.Errorf("the next start: %v", mark)
	}
}

func TestAnOperatorEndsTheWaitForWindowsDurablyAndNeverMakesItLonger(t *testing.T) {
	now := noon
	d := restored(noon)
	r := d.start(t, func() time.Time { return now })
	now = noon.Add(5 * time.Minute)
	for _, row := range []struct {
		cluster string
		era     seq.Era
		reason  string
		want    error
	}{
		{"c2", 2, "all stopped", seq.ErrForeignCluster},
		{"c1", 1, "all stopped", seq.ErrStaleEra},
		{"c1", 2, "", seq.ErrBadArgument},
	} {
		if err := r.windowsOver(t.Context(), row.cluster, row.era, row.reason); !errors.Is(err, row.want) {
			t.Errorf("%+v: got %v", row, err)
		}
	}
	if mark, _ := shown(t, r); !mark.Equal(noon.Add(time.Hour)) {
		t.Fatalf("after orders that were refused: %v", mark)
	}
	want := now.Add(Overdrawn)
	for range 2 {
		if err := r.windowsOver(t.Context(), "c1", 2, "all stopped"); err != nil {
			t.Fatal(err)
		}
		if mark, tag := shown(t, r); !mark.Equal(want) || tag != 500 {
			t.Errorf("shown %v and %d, want %v and 500", mark, tag, want)
		}
		now = now.Add(10 * time.Second) // a floor that has come near is left as it is
	}
	now = noon.AddDate(0, 0, 1)
	if err := r.windowsOver(t.Context(), "c1", 2, "all stopped"); err != nil {
		t.Fatal(err)
	}
	r.close()
	if mark, _ := shown(t, d.start(t, at(now))); !mark.Equal(want) {
		t.Errorf("started again: %v, want %v", mark, want)
	}
}
