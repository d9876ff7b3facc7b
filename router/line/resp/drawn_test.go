package resp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/seq"
)

// drawnCommands is a pipeline of 1 to 40 commands. Two texts of one key are among them, and
// commands that are refused. It leaves no transaction open.
func drawnCommands(draw *rand.Rand) string {
	var b strings.Builder
	key := func() string {
		return [...]string{"seq:", "seq:/", "seq:user/", "seq:orders/", "seq:007/00"}[draw.IntN(5)] + fmt.Sprint(1+draw.IntN(4))
	}
	id := func() string { return fmt.Sprint("id-", draw.IntN(20)) }
	for range 1 + draw.IntN(40) {
		switch draw.IntN(14) {
		case 0, 1, 2:
			b.WriteString(linetest.Array("INCR", key()))
		case 3, 4:
			b.WriteString(linetest.Array("incrby", key(), fmt.Sprint(draw.IntN(30))))
		case 5:
			b.WriteString("INCR " + key() + "\r\n")
		case 6:
			b.WriteString(linetest.Array("INCRBY", "tag:orders", "7"))
		case 7:
			b.WriteString(linetest.Array("INCR", "snowflake:1"))
		case 8:
			b.WriteString(linetest.Array("MGET", key(), key()))
		case 9:
			b.WriteString(linetest.Array("SEQ.NEXT", key(), "COUNT", fmt.Sprint(1+draw.IntN(3)), "ID", id()))
		case 10:
			b.WriteString(linetest.Array("SEQ.LOOKUP", key(), "ID", id()))
		case 11:
			b.WriteString(linetest.Array("MULTI") + linetest.Array("INCR", key()) + linetest.Array("INCR", key()) + linetest.Array([]string{"EXEC", "DISCARD", "PING"}[draw.IntN(3)]))
		case 12:
			b.WriteString(linetest.Array([]string{"EXEC", "DISCARD", "WATCH", "NONE", "INCR", "GET"}[draw.IntN(6)]))
		case 13:
			b.WriteString(linetest.Array("ECHO", strings.Repeat("x", draw.IntN(300))))
		}
	}
	return b.String() + linetest.Array("DISCARD")
}

// answers sends a pipeline in pieces of at most so many bytes and gives what is answered up to a mark.
func answers(c *linetest.Caller, text, mark string, cut func() int) (all []string) {
	text += linetest.Array("ECHO", mark)
	go func() {
		for len(text) > 0 {
			n := min(cut(), len(text))
			if _, err := c.Conn.Write([]byte(text[:n])); err != nil {
				return // the reader says so
			}
			text = text[n:]
		}
	}()
	for {
		if all = append(all, c.Reply()); all[len(all)-1] == "$"+mark {
			return all
		}
	}
}

// A connection keeps room for its commands, orders and replies. However the bytes are cut, each
// pipeline is answered as by a connection of its own.
func TestAConnectionThatIsUsedAgainAnswersAsANewOne(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		draw := rand.New(rand.NewPCG(21, 1))
		other, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
		again := linetest.Dial(t, addr)
		for i := range 150 {
			text, mark, most := drawnCommands(draw), fmt.Sprint("mark ", i), 1+draw.IntN(200)
			cuts := rand.New(rand.NewPCG(uint64(i), 2))
			got := answers(again, text, mark, func() int { return 1 + cuts.IntN(most) })
			one := linetest.Dial(t, other)
			want := answers(one, text, mark, func() int { return len(text) + 100 })
			_ = one.Conn.Close()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("pipeline %d in pieces of at most %d bytes: got\n%q\nwant\n%q\nof %q", i, most, got, want, text)
			}
		}
	})
}

func TestTwoTextsOfOneKeyAreOneKeyInAPipelineAndATransaction(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	c.Send(linetest.Array("INCR", "seq:7") + linetest.Array("INCR", "seq:/7") + linetest.Array("INCRBY", "seq:user/07", "3") + linetest.Array("GET", "seq:/7"))
	for i, want := range []string{":1", ":2", ":5", "$5"} {
		if got := c.Reply(); got != want {
			t.Errorf("reply %d: got %s, want %s", i, got, want)
		}
	}
	c.Want("+OK", "MULTI")
	c.Want("+QUEUED", "INCR", "seq:/7")
	c.Want("+QUEUED", "INCR", "seq:7")
	c.Want("*[:6 :7]", "EXEC")
}

// fewIDs refuses more than four IDs at once.
type fewIDs struct{ *linetest.Counters }

func (f fewIDs) Generate(ctx context.Context, namespace string, count uint32) (client.IDs, error) {
	if count > 4 {
		return client.IDs{}, fmt.Errorf("generate: %w", seq.ErrTickUsedUp)
	}
	return f.Counters.Generate(ctx, namespace, count)
}

func TestAPipelineGetsIDsThatItsNamespaceDoesNotMakeAtOnce(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), fewIDs{linetest.NewCounters()}, nil))
	c := linetest.Dial(t, addr)
	c.Send(strings.Repeat(linetest.Array("INCR", "snowflake:1"), 50))
	for i := range 50 {
		if got, want := c.Reply(), fmt.Sprint("$", 1<<60+i); got != want {
			t.Errorf("ID %d: got %s, want %s", i, got, want)
		}
	}
}
