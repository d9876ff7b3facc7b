package seq_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func mapping(t *testing.T, spaces ...seq.Space) seq.Mapping {
	t.Helper()
	m, err := seq.NewMapping(spaces...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnAddedSpaceStandsAtTheEndAndMovesNothing(t *testing.T) {
	was := mapping(t, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "room", Sections: 4, Step: 7})
	m, added, err := was.Add(seq.Space{Name: "orders", Sections: 5, Mode: seq.Strict})
	if err != nil || !added {
		t.Fatal(added, err)
	}
	want := seq.Space{Name: "orders", First: 12, Sections: 5, Step: seq.DefaultStep, MaxStep: seq.DefaultMaxStep, Mode: seq.Strict, KeyHash: seq.SecretKeys, Added: true}
	if !m.Extends(was) || was.Extends(m) || !m.Extends(m) || m.Spaces[2] != want || m.Sections() != 17 {
		t.Errorf("got %+v", m)
	}
	if len(was.Spaces) != 2 {
		t.Error("the mapping of before was changed")
	}
	for _, tag := range []string{"a", "orders", "x.y", strings.Repeat("z", 60)} {
		if m.SectionOfName(tag) != was.SectionOfName(tag) {
			t.Errorf("tag %s moved from section %d to %d", tag, was.SectionOfName(tag), m.SectionOfName(tag))
		}
	}
	if other, _, err := was.Add(seq.Space{Name: "pts"}); err != nil || other.Extends(m) || m.Extends(other) {
		t.Errorf("mappings with different spaces extend each other, or %v", err)
	}
}

func TestASpaceIsAddedOnceWhateverIsRepeated(t *testing.T) {
	was := mapping(t, seq.Space{Name: "user", Sections: 8, KeyHash: seq.SecretKeys})
	m, _, err := was.Add(seq.Space{Name: "orders", Mode: seq.Strict, MaxJump: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []seq.Space{{Name: "orders", Mode: seq.Strict, MaxJump: 7}, m.Spaces[1], {Name: "user", Sections: 8}} {
		if again, added, err := m.Add(same); err != nil || added || !slices.Equal(again.Spaces, m.Spaces) {
			t.Errorf("%+v again: %v, %v", same, added, err)
		}
	}
	for _, other := range []seq.Space{{Name: "orders"}, {Name: "orders", Mode: seq.Strict}, {Name: "user", Sections: 9}} {
		if _, _, err := m.Add(other); !errors.Is(err, seq.ErrBadMapping) || !strings.Contains(err.Error(), "sections=") {
			t.Errorf("%+v: got %v, want ErrBadMapping with what is there", other, err)
		}
	}
}

func TestWhatCannotBeAddedIsRefused(t *testing.T) {
	was := mapping(t, seq.Space{Name: "user", Sections: seq.MaxNewSections - 10})
	for text, s := range map[string]seq.Space{
		"at most 65536":  {Name: "a", Sections: seq.MaxAdded + 1},
		"over all":       {Name: "a", Sections: 11},
		"mode=exact":     {Name: "a", Sections: 1, Window: time.Hour},
		`mode "loose"`:   {Name: "a", Sections: 1, Mode: "loose"},
		`space name "A"`: {Name: "A", Sections: 1},
		`space name ""`:  {Sections: 1},
	} {
		if _, _, err := was.Add(s); !errors.Is(err, seq.ErrBadMapping) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got %v, want ErrBadMapping with %q", s, err, text)
		}
	}
	full := mapping(t, seq.Space{Name: "user", Sections: 1})
	for i := range seq.MaxSpaces {
		next, _, err := full.Add(seq.Space{Name: "s" + string(rune('a'+i/16)) + string(rune('a'+i%16)), Sections: 1})
		if err != nil != (i == seq.MaxSpaces-1) {
			t.Fatalf("space %d: %v", i+2, err)
		}
		full = next
	}
}

func TestANewClusterHasAtMostTheSectionsThatOneWasRunWith(t *testing.T) {
	if _, err := seq.NewMapping(seq.Space{Name: "user", Sections: seq.MaxNewSections}); err != nil {
		t.Errorf("the most: %v", err)
	}
	for _, spaces := range [][]seq.Space{{{Name: "user", Sections: seq.MaxNewSections + 1}}, {{Name: "user", Sections: seq.MaxNewSections}, {Name: "room", Sections: 1}}, {{Name: "user", Sections: seq.MaxSections}}} {
		m, err := seq.NewMapping(spaces...)
		if !errors.Is(err, seq.ErrBadMapping) || !strings.Contains(err.Error(), "at most 262144") {
			t.Errorf("%+v: got %v", spaces, err)
		}
		if err := m.Validate(); err != nil {
			t.Errorf("a cluster that has as many already: %v", err)
		}
	}
}

func TestAddedSpacesComeAfterTheFirstOnes(t *testing.T) {
	space := func(name string, first seq.SectionID, added bool) seq.Space {
		return seq.Space{Name: name, First: first, Sections: 1, Step: 1, Mode: seq.Ordered, Added: added}
	}
	for name, m := range map[string]seq.Mapping{
		"the first": {Spaces: []seq.Space{space("a", 0, true)}},
		"between":   {Spaces: []seq.Space{space("a", 0, false), space("b", 1, true), space("c", 2, false)}},
	} {
		if err := m.Validate(); !errors.Is(err, seq.ErrBadMapping) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestATableMayKnowMoreOrFewerAddedSectionsThanTheMapping(t *testing.T) {
	was := mapping(t, seq.Space{Name: "user", Sections: 2})
	m, _, err := was.Add(seq.Space{Name: "room", Sections: 3})
	if err != nil {
		t.Fatal(err)
	}
	for n, sound := range []bool{false, false, true, true, true, true, true} {
		table := &seq.RouteTable{Version: 1}
		table.Cover(n)
		if err := errors.Join(table.Validate(m), table.Validate(was)); (err == nil) != sound {
			t.Errorf("%d sections: %v", n, err)
		}
		if p := table.Place(9); p.Owner != seq.NoNode || p.Standby != seq.NoNode || p.Standby2 != seq.NoNode {
			t.Errorf("a section that it does not know is at %+v", p)
		}
		if table.Cover(n) || len(table.Sections) != n || !table.Cover(n+1) {
			t.Error("Cover")
		}
	}
}

// Of several Sets each adds a space to its own mapping, and its sections must be the same in all.
func TestASpaceBeginsWhereItMustOrIsRefused(t *testing.T) {
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 12})
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []seq.SectionID{3, 13} {
		if _, _, err := m.Add(seq.Space{Name: "orders", Sections: 5, First: first}); !errors.Is(err, seq.ErrBadMapping) {
			t.Errorf("at %d: %v", first, err)
		}
	}
	m, added, err := m.Add(seq.Space{Name: "orders", Sections: 5, First: 12})
	if err != nil || !added {
		t.Fatal(added, err)
	}
	if _, added, err = m.Add(seq.Space{Name: "orders", Sections: 5, First: 12}); err != nil || added {
		t.Errorf("again: %v, %v", added, err)
	}
	if _, _, err = m.Add(seq.Space{Name: "orders", Sections: 5, First: 17}); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("again, elsewhere: %v", err)
	}
}
