package backup

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// withExact is sample with an exact space of two sections, of which the first has a copy.
func withExact(t *testing.T) (Manifest, []quorum.RegisterState, *exact.State) {
	t.Helper()
	m, states := sample(t)
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4}, seq.Space{Name: "order", Sections: 2, Mode: seq.Exact})
	if err != nil {
		t.Fatal(err)
	}
	m.Mapping = mapping
	epoch := seq.Epoch{Round: 7, Session: 0xa}
	now := taken.UnixMilli()
	o, err := exact.NewOwner(exact.Config{Window: 60_000}, epoch, &exact.State{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for uid, count := range map[seq.UID]uint32{1: 5, 2: 900} {
		if _, err := o.Take(uid, count, "id", now, now); err != nil {
			t.Fatal(err)
		}
	}
	whole := o.State()
	return m, append(states,
		quorum.RegisterState{Register: seq.SectionRegister(4), Promised: epoch, Accepted: epoch, PayloadMax: whole.At().Index, Payload: whole.AppendTo(nil)},
		quorum.RegisterState{Register: seq.SectionRegister(5), Promised: epoch}), whole
}

// After a restore every number and every id of the backup is there, and no UID, whether the
// backup knew it or not, gets a number that it may have got since.
func TestARestoreLiftsEveryUIDOfAnExactSpace(t *testing.T) {
	m, states, whole := withExact(t)
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	m, states, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := Check(m.Mapping, states); len(wrong) > 0 {
		t.Fatalf("sound registers: %q", wrong)
	}
	o := order(t)
	o.Era, o.Bump = 5, 1000 // two eras after the backup's
	c, err := o.Do(m, states)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := disk.Inspect(o.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []seq.SectionID{4, 5} {
		st := got[seq.SectionRegister(id)]
		s, err := exact.ReadState(st.Payload, seq.DefaultWindow.Milliseconds())
		if err != nil {
			t.Fatal(err)
		}
		if st.Max != 0 || st.Accepted != st.Promised || s.At() != (exact.Position{Epoch: st.Promised, Index: s.At().Index}) || s.At().Index == 0 {
			t.Errorf("section %d: %v, promised %v, accepted %v, max %d", id, s.At(), st.Promised, st.Accepted, st.Max)
		}
		if s.Last(3) != 2000 {
			t.Errorf("section %d: a UID that the backup does not know begins at %d, want 2000", id, s.Last(3))
		}
		if id == 4 && (s.Last(1) != 2005 || s.Last(2) != 2900 || s.IDs() != whole.IDs()) {
			t.Errorf("after the restore: %s, before %s", s.Describe(), whole.Describe())
		}
	}
	// The owner of the new era goes on above, and repeats what it must.
	next, err := exact.NewOwner(exact.Config{Window: 60_000}, seq.Epoch{Round: c.Registers[seq.SectionRegister(4)].Promised.Round + 1, Session: 9},
		c.Copies[4].Clone(), taken.UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[seq.UID]uint64{1: 2005, 3: 2000} { // they may have got as much since
		if a := next.Current(uid); a.First != want {
			t.Errorf("uid %d stands at %d, want %d", uid, a.First, want)
		}
	}
	for _, row := range []struct {
		uid  seq.UID
		id   string
		want uint64
	}{{1, "id", 1}, {1, "new", 2006}, {3, "id", 2001}} {
		count := uint32(5)
		if a, err := next.Take(row.uid, count, row.id, taken.UnixMilli(), taken.UnixMilli()); err != nil || a.First != row.want {
			t.Errorf("%d %q: got %+v, %v, want %d", row.uid, row.id, a, err, row.want)
		}
	}
	b, _ := next.Begin()
	if _, err := exact.Restore(c.Copies[4], 60_000).Append(&b, taken.UnixMilli()); err != nil {
		t.Errorf("its records at a restored store: %v", err)
	}
}

func TestCheckNamesWhatIsWrongWithACopy(t *testing.T) {
	m, _, _ := withExact(t)
	for want, change := range map[string]func(st *quorum.RegisterState){
		"its copy stands at":      func(st *quorum.RegisterState) { st.PayloadMax++ },
		"its encoding ends early": func(st *quorum.RegisterState) { st.Payload = st.Payload[:5] },
		"and its max is 9":        func(st *quorum.RegisterState) { st.Max = 9 },
	} {
		_, states, _ := withExact(t)
		change(&states[len(states)-2])
		if wrong := strings.Join(Check(m.Mapping, states), "\n"); !strings.Contains(wrong, want) {
			t.Errorf("got %q, want %q", wrong, want)
		}
	}
}
