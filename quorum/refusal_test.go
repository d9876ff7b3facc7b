package quorum

import (
	"math"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// largest is the largest value of each kind.
var largest = map[seq.Kind]uint64{
	seq.KindSection: uint64(seq.MaxSeq), seq.KindTag: math.MaxUint64, seq.KindWorker: 1000, seq.KindDocument: math.MaxInt64, seq.KindLease: math.MaxUint64,
}

func TestAStepIsRefusedByTheRulesOfItsKindAlone(t *testing.T) {
	limits := StepLimits{Payload: 10, Mark: 1000}
	for _, kind := range seq.Kinds() {
		r := seq.Register(kind.Kind) + "abcd"
		most, known := largest[kind.Kind]
		if !known {
			t.Errorf("kind %s: this test knows no largest value", kind.Name)
		}
		if why := Refusal(StepItem{Register: r, Max: most}, limits); why != "" {
			t.Errorf("%s at %d: %s", r, most, why)
		}
		if why := Refusal(StepItem{Register: r, Max: most + 1}, limits); most < math.MaxUint64 && !strings.Contains(why, "expected at most") {
			t.Errorf("%s at %d: got %q, want a refusal", r, most+1, why)
		}
		why := Refusal(StepItem{Register: r, Payload: []byte("body")}, limits)
		if allowed := kind.Kind == seq.KindDocument; allowed != (why == "") {
			t.Errorf("%s with a payload: %q", r, why)
		}
		if why := Refusal(StepItem{Register: r, Log: []byte("records")}, limits); why == "" {
			t.Errorf("%s: records are taken", r)
		}
	}
	long := StepItem{Register: seq.RoutesRegister, Payload: make([]byte, 11)}
	if why := Refusal(long, limits); !strings.Contains(why, "at most 10") {
		t.Errorf("a long payload: %q", why)
	}
	section := seq.SectionRegister(1)
	for want, item := range map[string]StepItem{"": {Register: section, Log: []byte("records")}, "expected records alone": {Register: section, Max: 5}} {
		if why := Refusal(item, StepLimits{Exact: true}); (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("an exact section: got %q, want %q", why, want)
		}
	}
	if why := Refusal(StepItem{Register: seq.WorkerRegister("n", 1, 2), Max: math.MaxUint64}, StepLimits{}); why != "" {
		t.Errorf("a mark without a limit: %q", why)
	}
}
