package client_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestBusinessNumbersComeFromTheOwnerOfTheTag(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{})
	for _, tag := range []string{"a", "b", "c", "d"} {
		cluster.AddNumbers(tag)
		for _, want := range []client.Numbers{{Texts: []string{"000001"}, First: 1, Last: 1}, {Texts: []string{"000002", "000003"}, First: 2, Last: 3}} {
			got, err := c.NextNumbers(bounded(t), tag, uint32(len(want.Texts)))
			want.Period = got.Period
			for i, count := range want.Texts {
				want.Texts[i] = tag + "-" + got.Period + "-" + count
			}
			if diff := cmp.Diff(want, got); err != nil || diff != "" || len(got.Period) != len("2026") {
				t.Errorf("period %q, %v (-want +got)\n%s", got.Period, err, diff)
			}
		}
	}
	for what, row := range map[string]struct {
		tag   string
		count uint32
		want  error
	}{"no name": {"", 1, seq.ErrBadArgument}, "none": {"a", 0, seq.ErrBadCount}, "too many": {"a", seq.MaxNumbers + 1, seq.ErrBadCount}, "unknown": {"z", 1, seq.ErrUnknownTag}} {
		if got, err := c.NextNumbers(bounded(t), row.tag, row.count); !errors.Is(err, row.want) {
			t.Errorf("%s: got %+v, %v, want %v", what, got, err, row.want)
		}
	}
}
