package storeadmin_test

import (
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// restored are stores a, b and c of a cluster that begins with floors.
func restored(t *testing.T, floors disk.Floors) []*store {
	t.Helper()
	names := []string{"a", "b", "c"}
	stores := make([]*store, len(names))
	for i, name := range names {
		stores[i] = newStore(t, name, func(dir string) error {
			id, err := storesvr.NewIdentity(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names,
				Spaces: []seq.Space{{Name: "user", Sections: sections}}})
			if err != nil {
				return err
			}
			return disk.Create(dir, id, disk.Filling{Floors: floors})
		})
	}
	cluster := connect(t, stores...)
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	return stores
}

func TestASnapshotHasTheHighestFloorsAndEveryStoreHearsThatWindowsAreOver(t *testing.T) {
	begun := time.Now()
	s := restored(t, disk.Floors{Floors: quorum.Floors{Tag: 77, Section: 88}, Stamp: &disk.Stamp{Margin: time.Hour}})
	c := open(t, s...)
	highest := func() quorum.Floors {
		t.Helper()
		snap, err := c.Snapshot(within(t))
		if err != nil {
			t.Fatal(err)
		}
		return snap.Floors
	}
	hour := uint64(begun.Add(time.Hour).UnixMilli())
	if got := highest(); got.Tag != 77 || got.Section != 88 || got.Worker < hour {
		t.Errorf("a snapshot with %+v, want at least 77 and %d", got, hour)
	}
	heard := map[string]bool{}
	err := c.WindowsOver(within(t), "a test", func(d *pb.DescribeReply) { heard[d.GetName()] = true })
	if err != nil || len(heard) != 3 {
		t.Errorf("heard by %v, %v", heard, err)
	}
	if got := highest(); got.Tag != 77 || got.Section != 88 || got.Worker >= hour {
		t.Errorf("afterwards a snapshot with %+v", got)
	}
	s[1].stop()
	heard = map[string]bool{}
	if err := c.WindowsOver(within(t), "a test", func(d *pb.DescribeReply) { heard[d.GetName()] = true }); err == nil || len(heard) != 2 {
		t.Errorf("with one store away: heard by %v, %v, want an error that names it", heard, err)
	}
}

func TestALearnerShowsTheFloorsThatItWasMadeWith(t *testing.T) {
	floors := quorum.Floors{Tag: 77, Worker: uint64(time.Now().Add(time.Hour).UnixMilli()), Section: 88}
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections, KeyHash: seq.SecretKeys})
	if err != nil {
		t.Fatal(err)
	}
	s := restored(t, disk.Floors{Floors: floors})
	fresh := newStore(t, "n", func(dir string) error {
		return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: dir, ClusterID: "c1", Name: "n", Mapping: mapping, Floors: floors})
	})
	s[0].stop()
	c := open(t, s[1:]...)
	steps, err := c.Replace(within(t), "a", fresh.addr, "")
	run(t, steps, err)
	s[1].stop()
	// Of its one fellow that is left a takeover needs both; the new one alone says as much.
	client, id := at(t, fresh)
	if id.Floors != floors {
		t.Errorf("floors %+v, want %+v", id.Floors, floors)
	}
	for _, r := range []seq.Register{seq.TagRegister("new"), seq.WorkerRegister("ids", 0, 1), seq.SectionRegister(2)} {
		reply, err := client.Prepare(within(t), quorum.PrepareRequest{Ref: id.Ref, Session: bob, Secret: sessiontest.SecretOf(bob),
			Items: []quorum.PrepareItem{{Register: r, Round: 1, Create: true}}})
		if want := floors.Of(r); err != nil || reply.Results[0].Max != want {
			t.Errorf("%s: %v, %v, want %d", r, reply.Results, err, want)
		}
	}
}
