package allocsvr

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// addSet adds a Set of the division to the map, or adds it again.
func (d *division) addSet(i int) {
	d.t.Helper()
	if _, err := d.root.Add(d.t.Context(), setadmin.NewSet(d.name(i), d.addrs(i), d), d.addrs(0)); err != nil {
		d.t.Fatal(err)
	}
}

// unsettled has the root be refused to be settled, by a Set's name.
func (d *division) unsettled(name string) {
	d.t.Helper()
	s := &setadmin.Settlement{Root: d.root, Conns: d, Set: sets.RootName, Bump: restoreBump}
	_, err := s.Run(d.t.Context())
	if !errors.Is(err, setadmin.ErrSetMissing) || !strings.Contains(fmt.Sprint(err), name) {
		d.t.Errorf("got %v, expected %v that names %q", err, setadmin.ErrSetMissing, name)
	}
	for _, n := range d.fleets[0].all() {
		if served, _ := n.Census(); served > 0 {
			d.t.Errorf("%d sections are served before they were settled", served)
		}
	}
}

// heard waits until the nodes of a Set have heard of another one.
func (d *division) heard(i int, name string) {
	d.t.Helper()
	for _, n := range d.fleets[i].all() {
		d.until("a node has heard of the Set", func() bool {
			n.sets.Look()
			_, err := n.sets.Map().Set(name)
			return err == nil
		})
	}
}

// The backup is from before the cluster had Sets, and the operator says that it got some.
func TestABackupOfBeforeTheSetsIsRestoredAsTheirRoot(t *testing.T) {
	d := newDivision(t, 1, user16())
	for i := 1; i < 3; i++ {
		d.fleets = append(d.fleets, d.alone(i, fmt.Sprint("cluster-", i), user16()))
	}
	const uids = seq.UID(60)
	all := func() {
		for uid := range uids {
			d.next(uid) // the history shows that it rises
		}
	}
	all()
	manifest := d.backup(0)
	d.addSet(1)
	d.addSet(2)
	d.finish(d.begin(1, sets.Range{First: 0, Sections: 4}))
	d.finish(d.begin(2, sets.Range{First: 4, Sections: 4}))
	all()
	d.heard(1, "set-2")
	d.restore(0, manifest, func(o *backup.Restore) { o.WasSet = true })
	d.unsettled("seqctl set add")
	d.addSet(1)
	d.unsettled("set-2")
	d.addSet(2)
	got := d.settle(0)
	if len(got.Kept) != 8 || len(got.Given["set-1"]) != 4 || len(got.Given["set-2"]) != 4 {
		t.Errorf("settled: %+v", got)
	}
	all()
	d.agree()
	d.finish(d.begin(2, sets.Range{First: 0, Sections: 1}))
	d.finish(d.begin(1, sets.Range{First: 8, Sections: 1}))
	all()
}

// The map of the backup lacks a Set. Another one has heard of it, or has sent sections to it.
func TestARootIsNotSettledWhileItsMapLacksASet(t *testing.T) {
	for name, deaf := range map[string]bool{"that was heard of": false, "that has got sections": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDivision(t, 2, user16())
			const uid = seq.UID(0)
			one := d.of(uid)
			d.finish(d.begin(1, one))
			d.next(uid)
			manifest := d.backup(0)
			d.deaf.Store(deaf)
			d.fleets = append(d.fleets, d.alone(2, "cluster-2", user16()))
			d.addSet(2)
			if deaf {
				d.finish(d.begin(2, one))
			} else {
				d.heard(1, "set-2")
			}
			d.next(uid)
			d.restore(0, manifest)
			d.unsettled("set-2")
			d.addSet(2)
			d.settle(0)
			d.next(uid)
			d.agree()
		})
	}
}
