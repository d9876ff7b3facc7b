package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var errFull = errors.New("no space left")

// short is a file that takes so many bytes.
type short struct{ left int }

func (s *short) Write(b []byte) (int, error) {
	if len(b) > s.left {
		return 0, errFull
	}
	s.left -= len(b)
	return len(b), nil
}

// once fails at one write and takes all others.
type once struct{ left int }

func (o *once) Write(b []byte) (int, error) {
	o.left--
	if o.left == -1 {
		return 0, errFull
	}
	return len(b), nil
}

func written(t *testing.T, m Manifest, states []quorum.RegisterState) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestTheSameRegistersInAnyOrderAreTheSameFile(t *testing.T) {
	m, states := sample(t)
	turned := slices.Clone(states)
	slices.Reverse(turned)
	kept := slices.Clone(turned)
	if !bytes.Equal(written(t, m, states), written(t, m, turned)) {
		t.Error("two files of the same registers differ")
	}
	if diff := cmp.Diff(kept, turned); diff != "" {
		t.Errorf("the caller's registers were put into another order\n%s", diff)
	}
}

func TestAWriteThatFailsAnywhereSaysSo(t *testing.T) {
	m, states := sample(t)
	for n := range len(written(t, m, states)) {
		if err := Write(&short{n}, m, states); !errors.Is(err, errFull) {
			t.Fatalf("with room for %d bytes: got %v", n, err)
		}
	}
	for k := range len(states) + 2 {
		if err := Write(&once{k}, m, states); !errors.Is(err, errFull) {
			t.Fatalf("if write %d fails alone: got %v", k, err)
		}
	}
	if _, _, err := Read(io.MultiReader(strings.NewReader(magic), failing{})); !errors.Is(err, errFull) {
		t.Errorf("a read that fails: got %v", err)
	}
	if err := Save(filepath.Join(t.TempDir(), "none", "backup"), m, states); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: got %v", err)
	}
	if _, _, err := Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errFull }

// A checksum over the whole file says that it is as it was written, not that it was
// written by this software.
func TestAFileThatWasSealedAndIsNoBackupIsRefused(t *testing.T) {
	m, states := sample(t)
	whole := written(t, m, states)
	body := whole[:len(whole)-sha256.Size]
	record := encode(states[0])
	swapped := bytes.Clone(body)
	swapped[len(swapped)-1] ^= 1 // of the last record's own checksum
	head := body[:bytes.IndexByte(body[len(magic):], '\n')+len(magic)+1]
	for name, b := range map[string][]byte{
		"a record too many":        append(bytes.Clone(body), record...),
		"a record too few":         body[:len(body)-len(encode(byName(states)[len(states)-1]))],
		"a record cut short":       body[:len(body)-1],
		"a few bytes more":         append(bytes.Clone(body), 1, 2, 3),
		"a record's checksum":      swapped,
		"a head of a record alone": append(bytes.Clone(head), record[:headLen]...),
		"no manifest":              []byte(magic),
		"a manifest without end":   []byte(magic + "{}"),
		"a manifest of no JSON":    []byte(magic + "x\n"),
		"another magic":            append([]byte("seqsvr backup 2\n"), body[len(magic):]...),
	} {
		sum := sha256.Sum256(b)
		if _, _, err := Read(bytes.NewReader(append(bytes.Clone(b), sum[:]...))); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", name, err)
		}
	}
}

func byName(states []quorum.RegisterState) []quorum.RegisterState {
	sorted := slices.Clone(states)
	slices.SortFunc(sorted, func(a, b quorum.RegisterState) int { return strings.Compare(string(a.Register), string(b.Register)) })
	return sorted
}

func TestCheckKnowsTheLimitsToTheLastOne(t *testing.T) {
	m, _ := sample(t)
	for name, row := range map[string]struct {
		change func(s []quorum.RegisterState)
		want   string // empty if sound
	}{
		"a section at the end":         {func(s []quorum.RegisterState) { s[4].Max = uint64(seq.MaxSeq) }, ""},
		"a section beyond it":          {func(s []quorum.RegisterState) { s[4].Max = uint64(seq.MaxSeq) + 1 }, "above 2^53-1"},
		"a tag beyond it":              {func(s []quorum.RegisterState) { s[0].Max = uint64(seq.MaxSeq) + 1 }, ""},
		"one section too many":         {func(s []quorum.RegisterState) { s[0].Register = seq.SectionRegister(4) }, "the mapping has sections 0 to 3"},
		"a payload of a tag":           {func(s []quorum.RegisterState) { s[0].Payload = make([]byte, 20) }, "only documents"},
		"a document without version":   {func(s []quorum.RegisterState) { s[len(s)-1].Payload = make([]byte, versionLen-1) }, "expected a version"},
		"a document with version only": {func(s []quorum.RegisterState) { s[len(s)-1].Payload = make([]byte, versionLen) }, ""},
	} {
		_, states := sample(t)
		if states[len(states)-1].Register.Leased() {
			t.Fatal("the sample ends with no document")
		}
		row.change(states)
		wrong := Check(m.Mapping, states)
		if row.want == "" && len(wrong) > 0 || row.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], row.want)) {
			t.Errorf("%s: got %q, want %q alone", name, wrong, row.want)
		}
	}
	_, states := sample(t)
	if wrong := Check(seq.Mapping{}, states); len(wrong) != 1 {
		t.Errorf("a mapping that is none: got %q", wrong)
	}
	states[0].Register, states[0].Accepted = "zz", seq.Epoch{Round: 99}
	if wrong := Check(m.Mapping, states); len(wrong) != 1 {
		t.Errorf("a name that is none: got %q, want that alone", wrong)
	}
}

// An epoch that a process could have would let it go on with what it had, or take up what
// it sealed.
func TestEveryRegisterBeginsUnderANewEpochOfNobody(t *testing.T) {
	m, states := sample(t)
	first := order(t)
	second := order(t)
	second.Name = "b"
	var contents [2]Content
	for i, o := range []Restore{first, second} {
		c, err := o.Content(m, states)
		if err != nil {
			t.Fatal(err)
		}
		contents[i] = c
	}
	if diff := cmp.Diff(contents[0].Registers, contents[1].Registers); diff != "" {
		t.Errorf("two stores of one era begin with different registers\n%s", diff)
	}
	for _, st := range states {
		got, there := contents[0].Registers[st.Register]
		switch {
		case !there:
			t.Errorf("%s is not there", st.Register)
		case st.Register == seq.MembersRegister || st.Register.Kind() == seq.KindDocument && len(st.Payload) == 0:
			if diff := cmp.Diff(got.Promised, seq.Epoch{}); diff != "" {
				t.Errorf("%s begins under %v", st.Register, got.Promised)
			}
		case got.Promised.Round != st.Promised.Round+1 || got.Promised.Session == 0 || got.Promised.Session == st.Promised.Session:
			t.Errorf("%s begins under %v, after %v", st.Register, got.Promised, st.Promised)
		}
		if got.Accepted != got.Promised {
			t.Errorf("%s begins with %v accepted under %v", st.Register, got.Accepted, got.Promised)
		}
	}
}

func TestTheMarginOfWorkersMayBeNothingAndNotNegative(t *testing.T) {
	m, states := sample(t)
	o := order(t)
	o.WorkerMargin = 0
	if _, err := o.Content(m, states); err != nil {
		t.Error(err)
	}
	o.WorkerMargin = -1
	if _, err := o.Content(m, states); !errors.Is(err, ErrBump) {
		t.Errorf("got %v, want ErrBump", err)
	}
}

func TestARestoreGoesUpToTheLimitAndNotBeyond(t *testing.T) {
	document := func(s []quorum.RegisterState) *quorum.RegisterState {
		i := slices.IndexFunc(s, func(st quorum.RegisterState) bool { return st.Register == seq.RoutesRegister })
		return &s[i]
	}
	version := func(v uint64) []byte { return append(binary.BigEndian.AppendUint64(nil, v), "table"...) }
	const last = math.MaxInt64 // of a document
	const end = uint64(seq.MaxSeq)
	for name, row := range map[string]struct {
		change func(o *Restore, s []quorum.RegisterState)
		want   error
	}{
		"a tag with room":                    {func(_ *Restore, s []quorum.RegisterState) { s[0].Max = end - DefaultBump }, nil},
		"a tag without that is near its end": {func(_ *Restore, s []quorum.RegisterState) { s[0].Max = end - DefaultBump + 1 }, nil},
		"a tag at its end":                   {func(_ *Restore, s []quorum.RegisterState) { s[0].Max = end }, nil},
		"a healthy tag without":              {func(o *Restore, s []quorum.RegisterState) { o.Bump, s[0].Max = end-seq.NearEnd+1, seq.NearEnd }, ErrBump},
		"a bump of a tag that wraps":         {func(o *Restore, _ []quorum.RegisterState) { o.Era = 3 + 1<<32 }, ErrBump},
		"a bump of a tag alone that wraps":   {func(o *Restore, _ []quorum.RegisterState) { o.Bump, o.Era = 1<<34, 3+1<<30 }, ErrBump},
		"eras of a document that wrap":       {func(o *Restore, _ []quorum.RegisterState) { o.Bump, o.Era = 1, 3+1<<32 }, ErrBump},
		"a document with room":               {func(_ *Restore, s []quorum.RegisterState) { document(s).Payload = version(last - documentBump) }, nil},
		"a document without":                 {func(_ *Restore, s []quorum.RegisterState) { document(s).Payload = version(last - documentBump + 1) }, ErrBump},
		"a document whose max has none":      {func(_ *Restore, s []quorum.RegisterState) { document(s).Max = last - documentBump + 1 }, ErrBump},
		"a document beyond":                  {func(_ *Restore, s []quorum.RegisterState) { document(s).Payload = version(last + 1) }, ErrBump},
	} {
		m, states := sample(t)
		o := order(t)
		row.change(&o, states)
		got, err := o.Content(m, states)
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
		if row.want != nil {
			continue
		}
		routes, was := got.Registers[seq.RoutesRegister], document(states)
		least := max(was.Max, binary.BigEndian.Uint64(was.Payload)) + documentBump
		if v := binary.BigEndian.Uint64(routes.Payload); v != least || routes.Max != v || routes.PayloadMax != v {
			t.Errorf("%s: version %d, max %d, of the payload %d, want %d", name, v, routes.Max, routes.PayloadMax, least)
		}
		if tag := got.Registers[seq.TagRegister("orders")].Max; tag != min(states[0].Max+DefaultBump, end) {
			t.Errorf("%s: the tag is at %d", name, tag)
		}
	}
}

func TestTheArbitersLeaseKeepsWhatItHas(t *testing.T) {
	m, states := sample(t)
	i := slices.IndexFunc(states, func(st quorum.RegisterState) bool { return st.Register == seq.ArbiterRegister })
	states[i].Max = 5
	got, err := order(t).Content(m, states)
	if err != nil || got.Registers[seq.ArbiterRegister].Max != 5 {
		t.Errorf("got %+v, %v", got.Registers[seq.ArbiterRegister], err)
	}
}

// Another backup, or another era, begins under another epoch.
func TestTheEpochOfNobodyIsOfOneBackupAndOneEra(t *testing.T) {
	m, _ := sample(t)
	later := m
	later.Taken = m.Taken.Add(1)
	seen := map[seq.Session]bool{}
	for _, id := range []seq.Session{nobodyOf(m, 4), nobodyOf(m, 5), nobodyOf(later, 4)} {
		if id == 0 || seen[id] {
			t.Errorf("session %v twice or none", id)
		}
		seen[id] = true
	}
}

func TestADocumentOfAVersionAloneIsRestored(t *testing.T) {
	m, states := sample(t)
	i := slices.IndexFunc(states, func(st quorum.RegisterState) bool { return st.Register == seq.RoutesRegister })
	states[i].Payload = states[i].Payload[:versionLen]
	got, err := order(t).Content(m, states)
	if err != nil || len(got.Registers[seq.RoutesRegister].Payload) != versionLen {
		t.Errorf("got %+v, %v", got.Registers[seq.RoutesRegister], err)
	}
}

// Fields that an older build would drop keep that build from reading the backup, and from serving
// stores made of it.
func TestABackupWithWhatOlderBuildsWouldDropIsNotReadByThem(t *testing.T) {
	m, states := sample(t)
	for _, row := range []struct {
		name   string
		change func(*Manifest)
		first  [2]string // unsigned, signed
	}{
		{"plain", func(*Manifest) {}, [2]string{magic, magicSigned}},
		{"exact spaces", func(m *Manifest) { m.Required = version.ExactSpaces }, [2]string{magic, magicSigned}},
		{"a required protocol", func(m *Manifest) { m.Required = version.Gate }, [2]string{magicGated, magicBoth}},
		{"a floor of sections", func(m *Manifest) { m.Floors.Section = 7 }, [2]string{magicGated, magicBoth}},
	} {
		of := m
		row.change(&of)
		for i, key := range []Key{nil, mine} {
			var file bytes.Buffer
			if err := key.Write(&file, of, states); err != nil {
				t.Fatal(err)
			}
			if got := string(file.Bytes()[:len(magic)]); got != row.first[i] {
				t.Errorf("%s: it begins with %q, want %q", row.name, got, row.first[i])
			}
			got, _, sig, err := key.Read(bytes.NewReader(file.Bytes()))
			if err != nil || got.Required != of.Required || got.Floors != of.Floors || (sig == Held) != (key != nil) {
				t.Errorf("%s: read as %+v, %v, %v", row.name, got, sig, err)
			}
			of.Floors.Section = 0
			with, err := order(t).Filling(of, states)
			if err != nil || with.Required != of.Required {
				t.Errorf("%s: restored with protocol %d, %v", row.name, with.Required, err)
			}
			row.change(&of)
		}
	}
	m.Required = version.Protocol + 1
	if _, err := order(t).Filling(m, states); !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("of a later build: %v", err)
	}
}
