package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// had is a value that each kind may have in a backup.
var had = map[seq.Kind]uint64{
	seq.KindSection: 500, seq.KindTag: 600, seq.KindWorker: uint64(taken.UnixMilli()), seq.KindDocument: 12, seq.KindLease: 3,
}

// A register of each kind begins above everything that it handed out, or the floor of its kind is
// above that.
func TestARegisterOfEveryKindBeginsAboveWhatItHad(t *testing.T) {
	m, states := sample(t)
	one := map[seq.Kind]seq.Register{seq.KindSection: seq.SectionRegister(2), seq.KindTag: seq.TagRegister("orders"),
		seq.KindWorker: seq.WorkerRegister("ns", 1, 2), seq.KindDocument: seq.RoutesRegister, seq.KindLease: seq.ArbiterRegister}
	for i := range states {
		if r := states[i].Register; one[r.Kind()] == r {
			states[i].Max = had[r.Kind()]
		}
	}
	with, err := order(t).Filling(m, states)
	if err != nil {
		t.Fatal(err)
	}
	floors := with.Floors.Made(taken)
	for _, kind := range seq.Kinds() {
		r, known := one[kind.Kind]
		if !known {
			t.Errorf("kind %s: this test restores none", kind.Name)
			continue
		}
		st, was := with.Registers[r], had[kind.Kind]
		if kind.Holds != seq.NoValue && max(st.Max, floors.Of(r)) <= was {
			t.Errorf("%s: counts for %d, and had %d", r, max(st.Max, floors.Of(r)), was)
		}
		if st.Max < was || st.Promised.Session == 0 || st.Promised.Round != 8 && kind.Kind != seq.KindLease {
			t.Errorf("%s: %+v, had %d", r, st, was)
		}
		if kind.Made != seq.ByInit && floors.Of(r) == 0 {
			t.Errorf("kind %s: a register that the backup does not know begins at 0", kind.Name)
		}
	}
}

// Each fixed document is carried over as its row says.
func TestEveryFixedDocumentIsCarriedOverAsItsRowSays(t *testing.T) {
	record, err := sets.Record{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, states := sample(t)
	for i := range states {
		body := "body"
		switch r := states[i].Register; {
		case !r.HasPayload():
			continue
		case r == seq.RecordRegister:
			body = string(record)
		case r == seq.SetsRegister:
			continue // an empty map is none
		}
		states[i].Payload = append(binary.BigEndian.AppendUint64(nil, 7), body...)
		states[i].Max, states[i].PayloadMax = 7, 7
	}
	with, err := order(t).Filling(m, states)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		row, known := st.Register.FixedRules()
		if !known || len(st.Payload) == 0 {
			continue
		}
		got := with.Registers[st.Register]
		switch row.Carried {
		case seq.StartOver:
			if len(got.Payload) > 0 {
				t.Errorf("%s: %q is carried over", st.Register, got.Payload)
			}
		case seq.CarryOver:
			if len(got.Payload) < versionLen || string(got.Payload[versionLen:]) != "body" || got.Max <= 7 {
				t.Errorf("%s: %q, version %d", st.Register, got.Payload, got.Max)
			}
		case seq.Unsettle:
			if len(got.Payload) < versionLen || got.Max <= 7 {
				t.Errorf("%s: %q, version %d", st.Register, got.Payload, got.Max)
			}
		default:
			t.Errorf("%s: nothing says what a restore does to it", st.Register)
		}
	}
}

func TestARegisterWithoutRulesIsRefusedByName(t *testing.T) {
	for r, want := range map[seq.Register]string{"zinvented": "kind 'z'", "dinvented": "document invented"} {
		m, states := sample(t)
		_, err := order(t).Filling(m, append(states, quorum.RegisterState{Register: r, Max: 100}))
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrNewer with %q", r, err, want)
		}
		if _, err := order(t).raised(m, quorum.RegisterState{Register: r, Max: 100}, seq.Epoch{Round: 1, Session: 1}); !errors.Is(err, ErrNewer) {
			t.Errorf("%s: got %v, want ErrNewer", r, err)
		}
	}
}

// A space that was added after the backup is not in it. Its sections begin at the floor of the era,
// which is above what the era before gave them, however many eras follow each other, from one backup or
// from a backup of each era.
func TestSectionsThatNoBackupKnowsBeginAboveTheErasBefore(t *testing.T) {
	m, states := sample(t)
	o := order(t)
	o.Bump = 1000
	first, again := uint64(0), uint64(0)
	for step := range uint64(3) {
		o.Era = m.Era + 1
		with, err := o.Filling(m, states)
		if err != nil {
			t.Fatal(err)
		}
		floor := with.Floors.Section
		if floor < first+1000 {
			t.Errorf("era %d: sections begin at %d, those of the era before at %d", o.Era, floor, first)
		}
		first = floor
		for _, st := range states {
			if _, section := st.Register.Section(); section && with.Registers[st.Register].Max < floor {
				t.Errorf("era %d: %s, which the backup knows, is at %d, below the floor %d", o.Era, st.Register, with.Registers[st.Register].Max, floor)
			}
		}
		skipped := o
		skipped.Era += seq.Era(step)
		if with, err = skipped.Filling(m, states); err != nil || with.Floors.Section < again {
			t.Errorf("era %d of the same backup: floor %d, %v", skipped.Era, with.Floors.Section, err)
		}
		again = with.Floors.Section
		m.Era, m.Floors = o.Era, quorum.Floors{Tag: with.Floors.Tag, Section: floor}
	}
	m.Floors.Section = uint64(seq.MaxSeq) - 10
	if _, err := o.Filling(m, states); !errors.Is(err, ErrEra) && !errors.Is(err, ErrBump) {
		t.Errorf("no room: got %v", err)
	}
}

// A section of a space that was added in a restored era counts for the floor of that era while it is
// at zero on the disks, and so the next era begins it above what it may have handed out from there.
func TestAnEraRaisesWhatCountedForTheFloorOfTheEraBefore(t *testing.T) {
	m, states, _ := withExact(t)
	m.Floors = quorum.Floors{Section: 1 << 40, Tag: 1 << 40}
	for i := range states {
		states[i].Max = min(states[i].Max, 1000)
	}
	o := order(t)
	with, err := o.Filling(m, states)
	if err != nil {
		t.Fatal(err)
	}
	want := uint64(1<<40) + DefaultBump
	if got := with.Registers[seq.SectionRegister(0)].Max; got < want {
		t.Errorf("section 0 is at %d, want %d at least", got, want)
	}
	if got := with.Registers[seq.TagRegister("orders")].Max; got < want {
		t.Errorf("the tag is at %d, want %d at least", got, want)
	}
	empty := with.Copies[5]
	if empty == nil || empty.Last(77) < want {
		t.Errorf("a UID of an exact section without records goes on from %v, want %d at least", empty, want)
	}
	if got := exact.Beginning(5).Last(1); got != 5 {
		t.Errorf("a section that begins at 5 has given %d", got)
	}
}

// A field that this build would drop may be a floor.
func TestABackupOfANewerBuildIsNamedAndNotDamaged(t *testing.T) {
	m, states := sample(t)
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	sealed := func(change func(text []byte) []byte) []byte {
		text := change(bytes.Clone(file.Bytes()[:file.Len()-sha256.Size]))
		sum := sha256.Sum256(text)
		return append(text, sum[:]...)
	}
	for name, text := range map[string][]byte{
		"a later format": sealed(func(b []byte) []byte { return bytes.Replace(b, []byte("backup 1"), []byte("backup 5"), 1) }),
		"a later floor":  sealed(func(b []byte) []byte { return bytes.Replace(b, []byte(`"floors":{`), []byte(`"floors":{"later":7`), 1) }),
	} {
		if _, _, err := Read(bytes.NewReader(text)); !errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrNewer", name, err)
		}
	}
}
