package seq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestSpacesAreReadAsOperatorsWriteThem(t *testing.T) {
	tests := []struct {
		text string
		want seq.Space
		bad  string // part of the error; empty if there is no error
	}{
		{"pts", seq.Space{Name: "pts"}, ""},
		{"pts:sections=64", seq.Space{Name: "pts", Sections: 64}, ""},
		{"pts:sections=64,step=100,mode=strict", seq.Space{Name: "pts", Sections: 64, Step: 100, Mode: seq.Strict}, ""},
		{"pts:step=100,max-step=4000", seq.Space{Name: "pts", Step: 100, MaxStep: 4000}, ""},
		{"pts:max-jump=9007199254740991", seq.Space{Name: "pts", MaxJump: uint64(seq.MaxSeq)}, ""},
		{"pts:max-jump=0", seq.Space{}, "max-jump"},
		{"pts:max-step=0", seq.Space{}, "max-step"},
		{"pts:mode=unique-only,step=1", seq.Space{Name: "pts", Step: 1, Mode: seq.UniqueOnly}, ""},
		{"pts:mode=exact,window=90m", seq.Space{Name: "pts", Mode: seq.Exact, Window: 90 * time.Minute}, ""},
		{"pts:window=0", seq.Space{}, "window"},
		{"pts:window=0s", seq.Space{}, "window"},
		{"pts:window=-1m", seq.Space{}, "window"},
		{"pts:window=600", seq.Space{}, "window"},
		{"inbox:tickets=10s", seq.Space{Name: "inbox", Tickets: 10 * time.Second}, ""},
		{"inbox:tickets=0", seq.Space{}, "tickets"},
		{"inbox:tickets=10", seq.Space{}, "tickets is \"10\", no duration above 0 such as 10s"},
		{"", seq.Space{}, "no name"},
		{":step=1", seq.Space{}, "no name"},
		{"pts:step", seq.Space{}, `"step" is no setting`},
		{"pts:steps=1", seq.Space{}, `"steps=1" is no setting`},
		{"pts:step=0", seq.Space{}, "step"},
		{"pts:step=-1", seq.Space{}, "step"},
		{"pts:sections=5000000000", seq.Space{}, "sections"},
		{"pts:sections=010", seq.Space{}, "without leading zeros"},
		{"pts:sections=64,step=0100", seq.Space{}, "without leading zeros"},
		{"pts:mode=", seq.Space{}, `"mode=" is no setting`},
	}
	for _, test := range tests {
		got, err := seq.ParseSpace(test.text)
		if got != test.want {
			t.Errorf("%q: got %+v, want %+v", test.text, got, test.want)
		}
		if test.bad == "" && err != nil || test.bad != "" && (err == nil || !strings.Contains(err.Error(), test.bad)) {
			t.Errorf("%q: got error %v, want one with %q", test.text, err, test.bad)
		}
	}
}
