package seq

import (
	"errors"
	"testing"
)

// FuzzRegisterNames: a name says what it is without trouble, whatever it holds.
func FuzzRegisterNames(f *testing.F) {
	for _, r := range append(FixedRegisters(), SectionRegister(1<<31), "torders", WorkerRegister("ns", 3, 1023), "", "s", "x\xff") {
		f.Add(string(r))
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := Register(name)
		if err := r.Validate(); err != nil && !errors.Is(err, ErrBadRegister) {
			t.Fatalf("error of no name: %v", err)
		}
		if id, ok := r.Section(); ok && (SectionRegister(id) != r || r.Validate() != nil) {
			t.Fatalf("%q is said to be section %d", name, id)
		}
		if r.String() == "" || r.OnDemand() && !r.Leased() {
			t.Fatalf("%q: text %q, on demand %t, leased %t", name, r.String(), r.OnDemand(), r.Leased())
		}
	})
}
