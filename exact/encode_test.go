package exact

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// FuzzEncodings reads any bytes: what is read is written and read again as it was.
func FuzzEncodings(f *testing.F) {
	r := Record{Epoch: seq.Epoch{Round: 3, Session: 9}, Index: 7, Prev: seq.Epoch{Round: 2, Session: 1}, Kind: Take,
		UID: 1 << 63, First: 5, Count: 2, ID: "a", Sent: 12, Time: 13}
	s := &State{}
	first := Record{Epoch: r.Epoch, Index: 1, Kind: Take, UID: 4, First: 1, Count: 3, ID: "b", Sent: 1, Time: 2}
	if err := Restore(s, testWindow).Take([]Record{first}); err != nil {
		f.Fatal(err)
	}
	f.Add(r.AppendTo(nil), s.AppendTo(nil))
	f.Add((&Change{Batch: Batch{Epoch: r.Epoch, Records: []Record{r, first}}}).AppendTo(nil), (&Change{Whole: s}).AppendTo(nil))
	f.Add((&Change{Whole: s}).AppendTo(nil), []byte{})
	f.Fuzz(func(t *testing.T, one, other []byte) {
		in := NewReader(one)
		if got := in.Record(); in.Err() == nil {
			again := NewReader(got.AppendTo(nil))
			if back := again.Record(); back != got || again.Err() != nil || again.Left() != 0 {
				t.Errorf("got %+v back, %v, want %+v", back, again.Err(), got)
			}
		}
		if c, err := ReadChange(one, testWindow); err == nil {
			if back, err := ReadChange(c.AppendTo(nil), testWindow); err != nil || !reflect.DeepEqual(back.Batch, c.Batch) || (back.Whole == nil) != (c.Whole == nil) {
				t.Errorf("got %+v back, %v, want %+v", back, err, c)
			}
		}
		in = NewReader(other)
		if got := in.State(testWindow); in.Err() == nil {
			again := NewReader(got.AppendTo(nil))
			back := again.State(testWindow)
			if again.Err() != nil || again.Left() != 0 || back.floor != got.floor || back.Describe() != got.Describe() ||
				!bytes.Equal(back.AppendTo(nil), got.AppendTo(nil)) {
				t.Errorf("got %s back, %v, want %s", back.Describe(), again.Err(), got.Describe())
			}
		}
	})
}
