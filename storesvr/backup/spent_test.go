package backup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ending is the sample with a section and a tag so near 2^53-1 that no bump has room.
func ending(t *testing.T, section, tag uint64) (Manifest, []quorum.RegisterState) {
	t.Helper()
	m, states := sample(t)
	for i := range states {
		if states[i].Register == seq.SectionRegister(1) {
			states[i].Max = section
		}
		if states[i].Register.Kind() == seq.KindTag {
			states[i].Max = tag
		}
	}
	return m, states
}

func TestARestoreGoesOnWithASpentSectionAndNamesIt(t *testing.T) {
	const end = uint64(seq.MaxSeq)
	for _, at := range []uint64{end, end - 1, end - DefaultBump + 1, end - seq.NearEnd/2, end + 1} {
		m, states := ending(t, min(at, end), at) // a backup may have a tag beyond it
		o := order(t)
		if at == end-seq.NearEnd/2 {
			o.Bump = seq.NearEnd
		}
		made, err := o.Content(m, states)
		if err != nil {
			t.Fatalf("a section at %d: %v", at, err)
		}
		for _, st := range states {
			got := made.Registers[st.Register].Max
			switch kind := st.Register.Kind(); {
			case kind != seq.KindSection && kind != seq.KindTag:
			case st.Max >= min(at, end) && got != max(st.Max, end): // where nothing is handed out
				t.Errorf("%s at %d: restored at %d, want %d", st.Register, at, got, end)
			case st.Max < min(at, end) && got != st.Max+o.Bump:
				t.Errorf("%s at %d: restored at %d, want %d", st.Register, st.Max, got, st.Max+o.Bump)
			}
		}
		lines := made.Spent()
		if len(lines) != 2 || !strings.Contains(lines[0], "section 1 of space") || !strings.Contains(lines[1], "tag") {
			t.Errorf("a section and a tag at %d: spent are %q", at, lines)
		}
	}
}

func TestABumpThatWouldEndAHealthySectionIsRefused(t *testing.T) {
	const end = uint64(seq.MaxSeq)
	m, states := ending(t, end-seq.NearEnd, 5)
	o := order(t)
	o.Bump = seq.NearEnd + 1
	if _, err := o.Content(m, states); !errors.Is(err, ErrBump) || !strings.Contains(err.Error(), "section 1") {
		t.Errorf("got %v, want ErrBump of section 1", err)
	}
	o.Bump = seq.NearEnd
	if _, err := o.Content(m, states); err != nil {
		t.Errorf("a bump that fits: %v", err)
	}
}

func TestACheckNamesWhatIsSpentAndFindsItSound(t *testing.T) {
	m, states := ending(t, uint64(seq.MaxSeq), uint64(seq.MaxSeq)+1<<40)
	if wrong := Check(m.Mapping, states); len(wrong) > 0 {
		t.Errorf("got %q, want a sound backup", wrong)
	}
	if got := Spent(m.Mapping, states); len(got) != 2 || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, ": 0 numbers left") }) {
		t.Errorf("got %q", got)
	}
	m, states = sample(t)
	if got := Spent(m.Mapping, states); len(got) > 0 {
		t.Errorf("of a healthy backup: %q", got)
	}
}
