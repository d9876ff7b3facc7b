package backup

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// withSets returns registers with these documents of the Sets.
func withSets(t *testing.T, states []quorum.RegisterState, r sets.Record, m sets.Map) []quorum.RegisterState {
	t.Helper()
	record, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	body, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return withBody(withBody(states, seq.RecordRegister, record), seq.SetsRegister, body)
}

func TestABackupTellsOfWhichSetItIs(t *testing.T) {
	_, states := sample(t)
	two := sets.Map{Version: 1, Sets: []sets.Set{{Name: "main", Cluster: "c1"}, {Name: "b", Cluster: "c2", Addrs: []string{"b:1"}}}}
	heard := two
	heard.Heard = true
	for name, row := range map[string]struct {
		record sets.Record
		m      sets.Map
		want   string
	}{
		"alone":             {sets.Record{}, sets.Map{}, "a cluster that is alone (no Set)"},
		"the root":          {sets.Record{Name: "main"}, two, "Set main, the root of 2 Sets"},
		"another":           {sets.NewRecord("b", []string{"a:1"}), heard, "Set b of the root at a:1, which has heard of 2 Sets"},
		"founded meanwhile": {sets.Record{}, two, "Set main, the root of 2 Sets"},
		"joined, not heard": {sets.NewRecord("b", []string{"a:1"}), sets.Map{}, "Set b of the root at a:1, which has heard of 0 Sets"},
		"to be settled":     {sets.Record{Name: "main", Rest: sets.Place{State: sets.Limbo}}, sets.Map{}, "Set main, the root of 0 Sets"},
	} {
		of, err := SetOf(withSets(t, states, row.record, row.m))
		if err != nil || of.String() != row.want {
			t.Errorf("%s: %q, %v, expected %q", name, of, err, row.want)
		}
	}
	if of, err := SetOf(states); err != nil || !of.Alone {
		t.Errorf("registers that never had a document: %v, %v", of, err)
	}
	broken := withBody(states, seq.RecordRegister, []byte("{"))
	if _, err := SetOf(broken); !errors.Is(err, seq.ErrBadTable) {
		t.Errorf("a record that is none: %v", err)
	}
	if wrong := Check(seq.Mapping{}, nil); len(wrong) == 0 {
		t.Error("no mapping is sound")
	}
	m, _ := sample(t)
	if wrong := Check(m.Mapping, broken); len(wrong) != 1 {
		t.Errorf("checked: %q, expected the record alone", wrong)
	}
}

func TestABackupOfAClusterThatWasASetBeginsInLimbo(t *testing.T) {
	m, all := sample(t)
	o := order(t)
	o.WasSet = true
	var none []quorum.RegisterState // of a build that knew no Sets
	for _, st := range all {
		if st.Register != seq.RecordRegister && st.Register != seq.SetsRegister {
			none = append(none, st)
		}
	}
	written := withSets(t, all, sets.Record{}, sets.Map{})
	for i := range written {
		if written[i].Register == seq.RecordRegister {
			written[i].Payload[7], written[i].Max = 9, 9
		}
	}
	for name, states := range map[string][]quorum.RegisterState{"never written": all, "no register": none, "written": written} {
		with, err := o.Filling(m, states)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body := func(r seq.Register) []byte { return bodyOf([]quorum.RegisterState{with.Registers[r].Of(r)}, r) }
		record, err := sets.ParseRecord(body(seq.RecordRegister))
		if err != nil || record.Rest.State != sets.Limbo || record.SetName() != sets.RootName || !record.IsRoot() {
			t.Errorf("%s: %+v, %v, expected a root in limbo", name, record, err)
		}
		if now, err := sets.ParseMap(body(seq.SetsRegister)); err != nil || !now.Restored || now.Last < documentBump {
			t.Errorf("%s: %+v, %v, expected the map of a backup, with numbers of a later era", name, now, err)
		}
		if got := with.Registers[seq.RecordRegister].Max; got < documentBump || name == "written" && got != documentBump+9 {
			t.Errorf("%s: version %d", name, got)
		}
		if with.Required != version.Sets {
			t.Errorf("%s: requires protocol %d, expected %d: older nodes know no limbo", name, with.Required, version.Sets)
		}
	}
	if _, err := o.Filling(m, withSets(t, all, sets.Record{Name: "main"}, sets.Map{})); !errors.Is(err, ErrWasSet) {
		t.Errorf("a backup of a Set: %v", err)
	}
	o.WasSet = false
	two := sets.Map{Version: 1, Sets: []sets.Set{{Name: "main", Cluster: "c1"}, {Name: "b", Cluster: "c2", Addrs: []string{"b:1"}}}}
	torn, err := o.Filling(m, withSets(t, all, sets.Record{}, two)) // the record was read, and then the first Set was added
	if err != nil {
		t.Fatal(err)
	}
	record, err := sets.ParseRecord(torn.Registers[seq.RecordRegister].Payload[versionLen:])
	if err != nil || record.Rest.State != sets.Limbo {
		t.Errorf("a root whose record was read before: %+v, %v, expected limbo", record, err)
	}
	now, err := sets.ParseMap(torn.Registers[seq.SetsRegister].Payload[versionLen:])
	if err != nil || len(now.Sets) != 2 || !now.Restored {
		t.Errorf("its map: %+v, %v, expected both Sets", now, err)
	}
	with, err := o.Filling(m, all)
	if err != nil || with.Registers[seq.RecordRegister].Payload != nil || with.Required != 0 {
		t.Errorf("alone: %+v, %v", with.Registers[seq.RecordRegister], err)
	}
}
