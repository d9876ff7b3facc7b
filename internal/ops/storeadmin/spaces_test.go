package storeadmin_test

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// extend tells some stores of a space.
func extend(t *testing.T, space string, stores ...*store) (m seq.Mapping) {
	t.Helper()
	for _, s := range stores {
		client, id := at(t, s)
		next, _, err := id.Mapping.Add(seq.Space{Name: space, Sections: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Extend(within(t), "c1", 0, next); err != nil {
			t.Fatal(err)
		}
		m = next
	}
	return m
}

// A store that was made before a space was added takes the place of one that has it; the third
// had not heard of it. A change that is killed after any step, between which a further space
// is added, is taken up.
func TestAReplacementHasTheSpacesThatWereAddedSinceItWasMade(t *testing.T) {
	for killed := range 4 {
		s := founders(t, 3)
		fresh := learner(t, "n")
		s[1].stop()
		extend(t, "room", s[0], s[2])
		room := seq.SectionRegister(sections)
		prepareAndStep(t, room, seq.Epoch{Round: 3, Session: alice}, 700, s[0], s[2])
		s[1].start()
		s[2].stop()

		first := open(t, s[:2]...)
		steps, err := first.Replace(within(t), "c", fresh.addr, "")
		if err != nil {
			t.Fatal(err)
		}
		run(t, steps[:killed], nil)
		first.Close()
		m := extend(t, "pts", s[0])
		fresh.stop()
		fresh.start()

		second := open(t, s[:2]...)
		steps, err = second.Replace(within(t), "c", fresh.addr, "")
		run(t, steps, err)
		_, id := at(t, fresh)
		if !id.Mapping.Extends(m) || !id.Voting {
			t.Errorf("killed after %d: the new store has %d spaces, %s", killed, len(id.Mapping.Spaces), id.State)
		}
		s[0].stop()
		wantBases(t, map[seq.Register]uint64{room: 700, seq.SectionRegister(seq.SectionID(m.Sections() - 1)): 0}, group(t, s[1], fresh))
		s[1].stop()
	}
}

func TestAStoreWithSpacesOfItsOwnIsNotTakenIn(t *testing.T) {
	s := founders(t, 3)
	extend(t, "room", s...)
	odd := newStore(t, "n", func(dir string) error {
		m, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections, KeyHash: seq.SecretKeys}, seq.Space{Name: "room", Sections: 3})
		if err != nil {
			return err
		}
		return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: dir, ClusterID: "c1", Name: "n", Mapping: m})
	})
	s[2].stop()
	_, err := open(t, s[:2]...).Replace(within(t), "c", odd.addr, "")
	wantErr(t, "other sections", err, seq.ErrBadMapping)
}

// A backup has the spaces that one of the stores has, and of their sections what any has.
func TestASnapshotHasTheSpacesThatSomeStoreHas(t *testing.T) {
	s := founders(t, 3)
	c := open(t, s...)
	m := extend(t, "room", s[1], s[2])
	room := seq.SectionRegister(sections + 2)
	prepareAndStep(t, room, seq.Epoch{Round: 3, Session: alice}, 700, s[1], s[2])
	snap, err := c.Snapshot(within(t))
	if err != nil || !snap.Mapping.Extends(m) {
		t.Fatalf("got %d spaces, %v", len(snap.Mapping.Spaces), err)
	}
	have := map[seq.Register]uint64{}
	for _, st := range snap.States {
		have[st.Register] = st.Max
	}
	for id := range seq.SectionID(m.Sections()) {
		if _, there := have[seq.SectionRegister(id)]; !there {
			t.Errorf("section %d is missing", id)
		}
	}
	if have[room] != 700 {
		t.Errorf("the last section is at %d", have[room])
	}
}

// A space that was decided and that no store, or not every store, has heard of yet is whole in a
// backup: each of its sections is there.
func TestASnapshotHasASpaceThatWasDecidedAndToldToNobody(t *testing.T) {
	for told := range 3 {
		s := founders(t, 3)
		_, id := at(t, s[0])
		m := id.Mapping
		for _, space := range []seq.Space{{Name: "room", Sections: 3}, {Name: "bills", Sections: 2, Mode: seq.Exact}} {
			var err error
			if m, _, err = m.Add(space); err != nil {
				t.Fatal(err)
			}
		}
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		payload := append(binary.BigEndian.AppendUint64(nil, 1), body...)
		e := seq.Epoch{Round: 3, Session: alice}
		for _, store := range s[:2] {
			client, id := at(t, store)
			request := quorum.PrepareRequest{Ref: id.Ref, Session: alice, Secret: sessiontest.SecretOf(alice), Items: []quorum.PrepareItem{{Register: seq.SpacesRegister, Round: e.Round}}}
			if _, err := client.Prepare(within(t), request); err != nil {
				t.Fatal(err)
			}
			step := quorum.StepRequest{Ref: id.Ref, Session: alice, Secret: sessiontest.SecretOf(alice),
				Items: []quorum.StepItem{{Register: seq.SpacesRegister, Round: e.Round, Max: 1, Payload: payload}}}
			if reply, err := client.Step(within(t), step); err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
				t.Fatal(reply, err)
			}
		}
		for _, store := range s[:told] {
			client, _ := at(t, store)
			if _, err := client.Extend(within(t), "c1", 0, m); err != nil {
				t.Fatal(err)
			}
		}
		snap, err := open(t, s...).Snapshot(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if !snap.Mapping.Extends(m) {
			t.Errorf("told to %d: a backup of %d spaces, want 3", told, len(snap.Mapping.Spaces))
		}
		if wrong := backup.Check(snap.Mapping, snap.States); len(wrong) > 0 {
			t.Errorf("told to %d: %q", told, wrong)
		}
	}
}
