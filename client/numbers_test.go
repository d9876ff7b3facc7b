package client_test

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/clienttest"
)

func TestBusinessNumbersComeFromTheOwnerOfTheTag(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{})
	for _, tag := range []string{"a", "b", "c", "d"} {
		cluster.AddTag(tag)
		for _, want := range []client.Numbers{
			{Texts: []string{tag + "-20261123-000001"}, Period: "20261123", First: 1, Last: 1},
			{Texts: []string{tag + "-20261123-000002", tag + "-20261123-000003"}, Period: "20261123", First: 2, Last: 3},
		} {
			got, err := c.NextNumbers(bounded(t), tag, uint32(len(want.Texts)))
			if err != nil || got.First != want.First || got.Last != want.Last || got.Period != want.Period || got.Texts[0] != want.Texts[0] || len(got.Texts) != len(want.Texts) {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
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
