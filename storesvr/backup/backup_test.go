package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

var taken = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample is a small sound cluster.
func sample(t *testing.T) (Manifest, []quorum.RegisterState) {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	epoch := seq.Epoch{Round: 7, Session: 0xa}
	document := append(binary.BigEndian.AppendUint64(nil, 12), "table"...)
	states := []quorum.RegisterState{
		{Register: seq.TagRegister("orders"), Promised: epoch, Accepted: epoch, Max: 900},
		{Register: seq.WorkerRegister("ns", 1, 2), Promised: epoch, Accepted: epoch, Max: uint64(taken.Add(-time.Hour).UnixMilli())},
		{Register: seq.WorkerRegister("ns", 1, 3), Promised: epoch, Accepted: epoch, Max: uint64(taken.Add(5 * time.Hour).UnixMilli())},
	}
	for id := range 4 {
		states = append(states, quorum.RegisterState{Register: seq.SectionRegister(seq.SectionID(id)), Promised: epoch, Accepted: epoch, Max: 1000 * uint64(id)})
	}
	for _, r := range seq.FixedRegisters() {
		st := quorum.RegisterState{Register: r}
		if r == seq.RoutesRegister || r == seq.MembersRegister {
			st = quorum.RegisterState{Register: r, Promised: epoch, Accepted: epoch, Max: 12, Payload: document, PayloadMax: 12}
		}
		states = append(states, st)
	}
	return Manifest{Cluster: "c1", Era: 3, Mapping: mapping, Sources: []string{"a", "b"}, Taken: taken, LeaseBound: 2 * time.Second}, states
}

func order(t *testing.T) Restore {
	t.Helper()
	return Restore{DataDir: filepath.Join(t.TempDir(), "store"), Name: "a", Names: []string{"a", "b", "c"}, Cluster: "c1", Era: 4,
		Bump: DefaultBump, WorkerMargin: DefaultWorkerMargin}
}

func TestARestoreKeepsTheIdOfTheCluster(t *testing.T) {
	m, states := sample(t)
	list := quorum.MemberList{Version: 1, Members: []quorum.Member{{UUID: "a"}, {UUID: "b"}}}
	first := list.Derived(seq.ClusterID{}, m.Cluster, m.Era).Cluster
	later := list
	later.Version = 2
	told := later
	told.Incarnation = seq.Incarnation{Cluster: seq.ClusterID{7}, Era: m.Era}
	for name, row := range map[string]struct {
		list quorum.MemberList
		want seq.ClusterID
	}{
		"told":                                 {told, seq.ClusterID{7}},
		"the first list of the version before": {list, first},
		"a later list of the version before":   {later, seq.ClusterID{}},
	} {
		m.Members = row.list
		with, err := order(t).Filling(m, states)
		if err != nil || with.Origin != row.want {
			t.Errorf("%s: %v, %v, expected %v", name, with.Origin, err, row.want)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	m, states := sample(t)
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	gotM, got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	m.Registers = len(states)
	if diff := cmp.Diff(m, gotM); diff != "" {
		t.Errorf("manifest (-want +got)\n%s", diff)
	}
	byName := map[seq.Register]quorum.RegisterState{}
	for _, st := range states {
		byName[st.Register] = st
	}
	for _, st := range got {
		if diff := cmp.Diff(byName[st.Register], st); diff != "" {
			t.Errorf("%s (-want +got)\n%s", st.Register, diff)
		}
		delete(byName, st.Register)
	}
	if len(byName) > 0 {
		t.Errorf("not read: %v", byName)
	}
	if len(got) != len(states) {
		t.Errorf("%d registers, want %d", len(got), len(states))
	}
}

func TestAFileThatWasCutOrChangedIsRefused(t *testing.T) {
	m, states := sample(t)
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	whole := file.Bytes()
	for n := range whole {
		if _, _, err := Read(bytes.NewReader(whole[:n])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: got %v, want ErrDamaged", n, len(whole), err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		if _, _, err := Read(bytes.NewReader(changed)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d changed: got %v, want ErrDamaged", n, err)
		}
	}
}

func TestSaveNeverTouchesAFileThatIsThere(t *testing.T) {
	m, states := sample(t)
	path := filepath.Join(t.TempDir(), "backup")
	if err := Save(path, m, states); err != nil {
		t.Fatal(err)
	}
	if err := Save(path, m, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second time: got %v, want ErrExist", err)
	}
	if _, got, err := Load(path); err != nil || len(got) != len(states) {
		t.Errorf("got %d registers, %v", len(got), err)
	}
	if left, _ := filepath.Glob(path + ".tmp-*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	m, sound := sample(t)
	if wrong := Check(m.Mapping, sound); len(wrong) > 0 {
		t.Errorf("sound registers: %q", wrong)
	}
	for want, change := range map[string]func([]quorum.RegisterState) []quorum.RegisterState{
		"above promised": func(s []quorum.RegisterState) []quorum.RegisterState { s[0].Accepted.Round++; return s },
		"twice":          func(s []quorum.RegisterState) []quorum.RegisterState { return append(s, s[0]) },
		"missing":        func(s []quorum.RegisterState) []quorum.RegisterState { return s[:len(s)-len(seq.LaterRegisters())-1] }, // v0.1.0 knew nothing of the later ones
		"section 3: missing": func(s []quorum.RegisterState) []quorum.RegisterState {
			s[6].Register = seq.SectionRegister(9)
			return s
		},
		"sections 0 to 3": func(s []quorum.RegisterState) []quorum.RegisterState {
			s[6].Register = seq.SectionRegister(9)
			return s
		},
		"2^53-1":       func(s []quorum.RegisterState) []quorum.RegisterState { s[4].Max = 1 << 60; return s },
		"only doc":     func(s []quorum.RegisterState) []quorum.RegisterState { s[4].Payload = []byte("x"); return s },
		"unknown kind": func(s []quorum.RegisterState) []quorum.RegisterState { s[0].Register = "zz"; return s },
	} {
		_, states := sample(t)
		wrong := strings.Join(Check(m.Mapping, change(states)), "\n")
		if want == "only doc" {
			want = "which only documents have"
		}
		if !strings.Contains(wrong, want) {
			t.Errorf("got %q, want %q", wrong, want)
		}
	}
}

func TestARestoreBeginsAboveEverythingThatMayHaveBeenHandedOut(t *testing.T) {
	m, states := sample(t)
	o := order(t)
	if _, err := o.Do(m, states); err != nil {
		t.Fatal(err)
	}
	meta, got, err := disk.Inspect(o.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if meta.Era != 4 || meta.Cluster != "c1" || meta.Members.Version != 0 || meta.LeaseBound < storesvr.DefaultMaxLease {
		t.Errorf("meta %+v", meta)
	}
	for _, st := range states {
		now, there := got[st.Register]
		if !there {
			t.Fatalf("%s is gone", st.Register)
		}
		switch st.Register.Kind() {
		case seq.KindSection, seq.KindTag:
			if want := st.Max + DefaultBump; now.Max != want {
				t.Errorf("%s: max %d, want %d", st.Register, now.Max, want)
			}
		case seq.KindWorker:
			if got := max(now.Max, meta.Floors.Made(taken).Worker); now.Max != st.Max || got < uint64(taken.Add(time.Hour).UnixMilli()) {
				t.Errorf("%s: mark %d, counts for %d", st.Register, now.Max, got)
			}
		}
		if st.Register.Kind() != seq.KindDocument && (now.Accepted == st.Accepted || now.Promised == st.Promised || now.Promised != now.Accepted) {
			t.Errorf("%s: accepted %s, promised %s: an epoch of before goes on", st.Register, now.Accepted, now.Promised)
		}
	}
	if got := meta.Floors.Tag; got != DefaultBump {
		t.Errorf("tags that the backup does not know begin at %d, want %d", got, DefaultBump)
	}
	routes := got[seq.RoutesRegister]
	if version := binary.BigEndian.Uint64(routes.Payload); version <= 1<<30 || routes.Max != version || string(routes.Payload[8:]) != "table" {
		t.Errorf("routes: version %d, max %d, body %q", version, routes.Max, routes.Payload[8:])
	}
	if diff := cmp.Diff(acceptor.State{}, got[seq.MembersRegister]); diff != "" {
		t.Errorf("member list (-want +got)\n%s", diff)
	}
	if _, err := o.Do(m, states); !errors.Is(err, disk.ErrExists) {
		t.Errorf("over a database: got %v, want ErrExists", err)
	}
}

func TestTheFloorOfWorkerIdsRestsOnTheClockOfTheStoreAndOnWhatTheBackupTellsOfTheTime(t *testing.T) {
	m, states := sample(t)
	floor := func(o Restore, clock time.Time) time.Time {
		t.Helper()
		c, err := o.Content(m, states)
		if err != nil {
			t.Fatal(err)
		}
		return time.UnixMilli(int64(c.Floors.Made(clock).Worker)).UTC()
	}
	o := order(t)
	states[2].Max = uint64(taken.Add(10 * time.Minute).UnixMilli()) // no further ahead than a store takes it
	if got, want := floor(o, taken.AddDate(0, 1, 0)), taken.AddDate(0, 1, 0).Add(time.Hour); !got.Equal(want) {
		t.Errorf("a month later: %v, want %v", got, want)
	}
	if got, want := floor(o, taken.AddDate(-1, 0, 0)), taken.Add(time.Hour); !got.Equal(want) {
		t.Errorf("a clock that is a year behind: %v, want %v", got, want)
	}
	o.WorkerMargin = time.Minute
	if got, want := floor(o, taken), taken.Add(time.Minute); !got.Equal(want) {
		t.Errorf("a margin of a minute: %v, want %v", got, want)
	}
	o.WorkerMargin = time.Hour
	states[2].Max = uint64(taken.Add(3 * time.Hour).UnixMilli()) // the backup was taken by a clock that is behind
	if got, want := floor(o, taken), taken.Add(3*time.Hour); !got.Equal(want) {
		t.Errorf("a mark that no store took before: %v, want %v", got, want)
	}
}

func TestABackupOfARestoredEraBeginsAboveTheFloorsOfThatEra(t *testing.T) {
	m, states := sample(t)
	m.Floors = quorum.Floors{Tag: 3 * DefaultBump, Worker: uint64(taken.Add(2 * time.Hour).UnixMilli())}
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	m, states, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := order(t).Content(m, states)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Floors.Made(taken); got.Tag != 4*DefaultBump || got.Worker < m.Floors.Worker {
		t.Errorf("got %+v after %+v", got, m.Floors)
	}
	m.Floors.Tag = 1 << 63
	if _, err := order(t).Content(m, states); !errors.Is(err, ErrBump) {
		t.Errorf("no room: got %v, want ErrBump", err)
	}
}

// The era between had begun at the same backup plus a bump, and handed out from there.
func TestTheSameBackupRestoredAgainBeginsAboveTheEraBetween(t *testing.T) {
	m, states := sample(t)
	o := order(t)
	first, err := o.Content(m, states)
	if err != nil {
		t.Fatal(err)
	}
	o.Era += 2
	third, err := o.Content(m, states)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		was, now := first.Registers[st.Register], third.Registers[st.Register]
		switch st.Register.Kind() {
		case seq.KindSection, seq.KindTag:
			if want := was.Max + 2*DefaultBump; now.Max != want {
				t.Errorf("%s: max %d two eras later, want %d", st.Register, now.Max, want)
			}
		case seq.KindDocument:
			if len(st.Payload) > 0 && st.Register != seq.MembersRegister && now.Max < was.Max+2*documentBump {
				t.Errorf("%s: version %d two eras later, %d before", st.Register, now.Max, was.Max)
			}
		}
	}
}

func TestARestoreRefusesByNameAndMakesNothing(t *testing.T) {
	m, states := sample(t)
	rows := []struct {
		name   string
		change func(o *Restore)
		want   error
	}{
		{"another cluster", func(o *Restore) { o.Cluster = "c2" }, seq.ErrForeignCluster},
		{"no era", func(o *Restore) { o.Era = 0 }, ErrEra},
		{"the era of the backup", func(o *Restore) { o.Era = 3 }, ErrEra},
		{"no bump", func(o *Restore) { o.Bump = 0 }, ErrBump},
		{"a bump that has no room", func(o *Restore) { o.Bump = uint64(seq.MaxSeq) }, ErrBump},
		{"more eras than there is room for", func(o *Restore) { o.Era = 1 << 22 }, ErrBump},
		{"eras that wrap", func(o *Restore) { o.Era = 1<<64 - 1 }, ErrBump},
		{"a bump that wraps", func(o *Restore) { o.Bump = 1<<64 - 1 }, ErrBump},
		{"a name that is no member", func(o *Restore) { o.Name = "z" }, storesvr.ErrConfig},
		{"no directory", func(o *Restore) { o.DataDir = "" }, storesvr.ErrConfig},
	}
	for _, row := range rows {
		o := order(t)
		dir := o.DataDir
		row.change(&o)
		if _, err := o.Do(m, states); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
		if _, _, err := disk.Inspect(dir); !errors.Is(err, disk.ErrNoDatabase) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if _, err := order(t).Do(m, states[1:5]); !errors.Is(err, ErrUnsound) {
		t.Errorf("registers missing: got %v, want ErrUnsound", err)
	}
}
