package seq

import (
	"strings"
	"sync"
	"testing"
)

func TestTheNamesOfSectionsAreInTheirOrderAndLeadBack(t *testing.T) {
	ids := []SectionID{0, 1, 255, 256, 1023, 1024, 65_535, 65_536, MaxSections - 1, MaxSections, 1<<32 - 1}
	var last Register
	for _, id := range ids {
		r := SectionRegister(id)
		if got, ok := r.Section(); !ok || got != id {
			t.Errorf("the name of section %d leads to %d, %v", id, got, ok)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("section %d: %v", id, err)
		}
		if strings.Compare(string(r), string(last)) <= 0 {
			t.Errorf("the name of section %d, %x, is not above the one before, %x", id, string(r), string(last))
		}
		last = r
	}
}

func TestTheNamesOfSectionsMayBeAskedForAtTheSameTime(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for id := range SectionID(5000) {
				if got, ok := SectionRegister(id).Section(); !ok || got != id {
					t.Errorf("got %d, %v, want %d", got, ok, id)
				}
			}
		})
	}
	wg.Wait()
}
