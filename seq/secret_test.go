package seq

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestASecretProvesItsOwnSessionAlone(t *testing.T) {
	a, b := NewSecret(""), NewSecret("")
	if err := a.Proves(a.Session()); err != nil || a.Session() == 0 {
		t.Errorf("its own: %v", err)
	}
	if err := a.Proves(b.Session()); !errors.Is(err, ErrNotSession) {
		t.Errorf("another's: got %v, want ErrNotSession", err)
	}
	if err := (Secret{}).Proves(0); !errors.Is(err, ErrBadArgument) {
		t.Errorf("session 0: got %v, want ErrBadArgument", err)
	}
}

// Only by naming its own node does a secret prove the session of a node: who has got hold of
// the seed, or of the key that older stores know, cannot make it another's.
func TestASessionOfANodeIsOfThatNodeAlone(t *testing.T) {
	a := NewSecret("alloc-1")
	for what, thief := range map[string]Secret{
		"another node":               {Seed: a.Seed, Node: "alloc-2"},
		"no node":                    {Seed: a.Seed},
		"the key, as of a node":      {Seed: a.Key(), Node: "alloc-2"},
		"the key, as of its own one": {Seed: a.Key(), Node: "alloc-1"},
	} {
		if err := thief.Proves(a.Session()); !errors.Is(err, ErrNotSession) {
			t.Errorf("%s: got %v, want ErrNotSession", what, err)
		}
	}
	if err := (Secret{Seed: a.Key()}).Proves(a.Session()); err != nil {
		t.Errorf("the key, at a store of v0.1.0: %v", err)
	}
}

func TestASecretTravelsAsTextAndIsNeverPrinted(t *testing.T) {
	a := NewSecret("")
	text, err := a.MarshalText()
	if err != nil || len(text) != 32 {
		t.Fatalf("got %q, %v, want 32 digits", text, err)
	}
	var back Secret
	named := NewSecret("alloc-1")
	with, err := named.MarshalText()
	if err == nil {
		err = back.UnmarshalText(with)
	}
	if err != nil || back != named {
		t.Errorf("%s read back with its node: %v", with, err)
	}
	if err := back.UnmarshalText(text); err != nil || back != a {
		t.Errorf("read back: %v", err)
	}
	if out := fmt.Sprintf("%v %s", a, a); strings.Contains(out, string(text)) {
		t.Errorf("printed as %q", out)
	}
	for _, wrong := range []string{"", "00", string(text[1:]), string(text) + "0", strings.Repeat("x", 32)} {
		if err := back.UnmarshalText([]byte(wrong)); !errors.Is(err, ErrBadArgument) || wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: got %v, want ErrBadArgument without the text", wrong, err)
		}
	}
}
