package seq

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Each place that decides by the kind of a register goes by this table, so a kind or a document that
// nobody thought of is found here.
func TestEveryKindAndEveryFixedRegisterHasEveryColumn(t *testing.T) {
	names, letters := map[string]bool{}, map[Kind]bool{}
	for _, row := range Kinds() {
		v := reflect.ValueOf(row)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("kind %q (%s): column %s is empty", byte(row.Kind), row.Name, v.Type().Field(i).Name)
			}
		}
		if names[row.Name] || letters[row.Kind] {
			t.Errorf("kind %q (%s) stands twice", byte(row.Kind), row.Name)
		}
		names[row.Name], letters[row.Kind] = true, true
		if row.Made != ByInit && row.Floor == NoFloor {
			t.Errorf("kind %s: a register that the backup lacks has no floor in a new era", row.Name)
		}
		r := Register(row.Kind) + "abcd"
		if *r.Rules() != row || !r.Kind().Known() || row.Kind != KindSection && !strings.HasPrefix(r.String(), row.Name+" ") {
			t.Errorf("%s: rules %+v, want %+v", r, *r.Rules(), row)
		}
	}
	for _, row := range fixed {
		if row.Register == "" || row.Carried == 0 || !row.Register.Kind().Known() {
			t.Errorf("%s: a column is empty: %+v", row.Register, row)
		}
		if err := row.Register.Known(); err != nil || row.Register.Rules().Made != ByInit {
			t.Errorf("%s: %v, made %v", row.Register, err, row.Register.Rules().Made)
		}
	}
}

// The table has exactly the kinds that code names.
func TestTheTableHasTheKindsThatCodeNames(t *testing.T) {
	for _, kind := range []Kind{KindSection, KindLease, KindDocument, KindTag, KindWorker} {
		if !kind.Known() || kind.Rules().Kind != kind {
			t.Errorf("kind %q has no row", byte(kind))
		}
	}
	if len(Kinds()) != 5 {
		t.Errorf("%d kinds: name the new one here and in the test of a restore", len(Kinds()))
	}
}

func TestARegisterWithoutRulesIsNamed(t *testing.T) {
	for r, want := range map[Register]string{"": "unknown kind", "zx": `unknown kind 'z'`, "dmade-up": "document made-up", "amade-up": "lease made-up"} {
		if err := r.Known(); !errors.Is(err, ErrBadRegister) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", string(r), err, want)
		}
	}
	for _, r := range []Register{SectionRegister(3), TagRegister("t"), WorkerRegister("n", 1, 2), RoutesRegister} {
		if err := r.Known(); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
}
