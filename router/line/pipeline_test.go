package line_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/router/line/resp"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAPipelineIsAFewCallsAndAnsweredInOrder(t *testing.T) {
	from := linetest.NewCounters()
	var ops []line.Op
	s := resp.New().Open(&line.Conn{})
	add := func(n int, words ...string) {
		for range n {
			var err error
			if _, ops, err = s.Read([]byte(linetest.Array(words...)), ops); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(300, "INCR", "seq:1")
	add(1, "PING")
	add(200, "INCRBY", "tag:orders", "3")
	add(100, "INCR", "snowflake:1")
	add(1, "INCR", "seq:13") // fails alone
	add(300, "INCRBY", "seq:1", "2")
	add(1, "INCR", "seq:none/4")
	add(1, "INCR", "seq:none/5")
	line.Run(context.Background(), from, ops)
	if got, want := from.Calls(), 4; got != want {
		t.Errorf("calls for %d commands: got %d, want %d", len(ops), got, want)
	}
	var replies []byte
	for i := range ops {
		replies, _ = s.Reply(replies, &ops[i])
	}
	var want strings.Builder
	for i := range 300 {
		fmt.Fprintf(&want, ":%d\r\n", i+1)
	}
	want.WriteString("+PONG\r\n")
	for i := range 200 {
		fmt.Fprintf(&want, ":%d\r\n", 102+3*i)
	}
	for i := range 100 {
		fmt.Fprintf(&want, "$19\r\n%d\r\n", uint64(1<<60)+uint64(i))
	}
	want.WriteString("-ERR OVERFLOW: next: " + seq.ErrOverflow.Error() + "\r\n")
	for i := range 300 {
		fmt.Fprintf(&want, ":%d\r\n", 302+2*i)
	}
	for range 2 {
		want.WriteString("-ERR UNKNOWN_SPACE: " + seq.ErrUnknownSpace.Error() + "\r\n")
	}
	if got := string(replies); got != want.String() {
		t.Errorf("replies: got\n%.2000s\nwant\n%.2000s", got, want.String())
	}
}

func TestManyTagTakesAreSplitWhereTheirSumIsTooLarge(t *testing.T) {
	from := linetest.NewCounters()
	ops := []line.Op{{Kind: line.TakeTag, Name: "orders", Count: seq.MaxCount}, {Kind: line.TakeTag, Name: "orders", Count: 5}, {Kind: line.TakeTag, Name: "orders", Count: 6}}
	line.Run(context.Background(), from, ops)
	for i, want := range []uint64{99 + seq.MaxCount, 104 + seq.MaxCount, 110 + seq.MaxCount} {
		if ops[i].N != want || ops[i].Err != nil {
			t.Errorf("take %d: got %d, %v, want %d", i, ops[i].N, ops[i].Err, want)
		}
	}
	if got := from.Calls(); got != 2 {
		t.Errorf("calls: got %d, want 2", got)
	}
}
