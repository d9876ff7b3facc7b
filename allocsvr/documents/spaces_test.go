package documents_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/seq"
)

// operator is a session of its own; lost has the outcome of its first swap unknown to it,
// applied or not.
func (c *cluster) operator(lost, applied bool) *documents.Spaces {
	c.t.Helper()
	return documents.NewSpaces(c.t.Context(), c.stores.Unsure(c.t, lost, applied), seq.NewSession())
}

// Operators who all know the cluster as it was at first each add a space. The answers to all of them are
// one mapping, as it grew.
func TestOperatorsAtOnceAddOneSpaceAfterTheOther(t *testing.T) {
	c := newCluster(t, seq.Space{Name: "user", Sections: 2})
	const operators = 4
	got := make([]seq.Mapping, 2*operators)
	var wg sync.WaitGroup
	for i := range got { // each space by two of them
		d := c.operator(i%3 == 1, i%2 == 0)
		wg.Go(func() {
			m, err := d.Add(t.Context(), c.stores.Mapping, seq.Space{Name: fmt.Sprint("s", i/2), Sections: uint32(1 + i/2)})
			if err != nil {
				t.Error(err)
			}
			got[i] = m
		})
	}
	wg.Wait()
	last, err := c.operator(false, false).Add(t.Context(), c.stores.Mapping, seq.Space{Name: "s0", Sections: 1})
	if err != nil || len(last.Spaces) != 1+operators || last.Sections() != 2+1+2+3+4 {
		t.Fatalf("got %+v, %v", last, err)
	}
	for i, m := range got {
		if _, err := m.Space(fmt.Sprint("s", i/2)); err != nil || !last.Extends(m) || !m.Extends(c.stores.Mapping) {
			t.Errorf("operator %d was told %+v, in the end it is %+v: %v", i, m, last, err)
		}
	}
}

func TestAnAddIsOneChangeWhateverBecomesOfItsAnswer(t *testing.T) {
	for _, applied := range []bool{false, true} {
		c := newCluster(t, seq.Space{Name: "user", Sections: 2})
		m, err := c.operator(true, applied).Add(t.Context(), c.stores.Mapping, seq.Space{Name: "room"})
		if err != nil || len(m.Spaces) != 2 {
			t.Errorf("applied %v: got %+v, %v", applied, m, err)
		}
		again, err := c.operator(false, false).Add(t.Context(), m, seq.Space{Name: "room"})
		if diff := cmp.Diff(m, again); err != nil || diff != "" {
			t.Errorf("applied %v, again: %v\n%s", applied, err, diff)
		}
		if _, err := c.operator(false, false).Add(t.Context(), m, seq.Space{Name: "room", Mode: seq.Strict}); !errors.Is(err, seq.ErrBadMapping) {
			t.Errorf("with another mode: %v", err)
		}
	}
}

func TestANodeWithSpacesThatWereNeverDecidedAddsNone(t *testing.T) {
	c := newCluster(t, seq.Space{Name: "user", Sections: 2})
	if _, err := c.operator(false, false).Add(t.Context(), c.stores.Mapping, seq.Space{Name: "room"}); err != nil {
		t.Fatal(err)
	}
	other, _, err := c.stores.Mapping.Add(seq.Space{Name: "pts"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.operator(false, false).Add(t.Context(), other, seq.Space{Name: "x"}); !errors.Is(err, seq.ErrBadMapping) {
		t.Errorf("got %v", err)
	}
}
