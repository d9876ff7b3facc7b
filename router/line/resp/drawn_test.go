package resp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
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
			b.WriteString(array("INCR", key()))
		case 3, 4:
			b.WriteString(array("incrby", key(), fmt.Sprint(draw.IntN(30))))
		case 5:
			b.WriteString("INCR " + key() + "\r\n")
		case 6:
			b.WriteString(array("INCRBY", "tag:orders", "7"))
		case 7:
			b.WriteString(array("INCR", "snowflake:1"))
		case 8:
			b.WriteString(array("MGET", key(), key()))
		case 9:
			b.WriteString(array("SEQ.NEXT", key(), "COUNT", fmt.Sprint(1+draw.IntN(3)), "ID", id()))
		case 10:
			b.WriteString(array("SEQ.LOOKUP", key(), "ID", id()))
		case 11:
			b.WriteString(array("MULTI") + array("INCR", key()) + array("INCR", key()) + array([]string{"EXEC", "DISCARD", "PING"}[draw.IntN(3)]))
		case 12:
			b.WriteString(array([]string{"EXEC", "DISCARD", "WATCH", "NONE", "INCR", "GET"}[draw.IntN(6)]))
		case 13:
			b.WriteString(array("ECHO", strings.Repeat("x", draw.IntN(300))))
		}
	}
	return b.String() + array("DISCARD")
}

// answers sends a pipeline in pieces of at most so many bytes and gives what is answered up to a mark.
func (c *caller) answers(text, mark string, cut func() int) (all []string) {
	text += array("ECHO", mark)
	go func() {
		for len(text) > 0 {
			n := min(cut(), len(text))
			if _, err := c.conn.Write([]byte(text[:n])); err != nil {
				return // the reader says so
			}
			text = text[n:]
		}
	}()
	for {
		if all = append(all, c.reply()); all[len(all)-1] == "$"+mark {
			return all
		}
	}
}

// A connection keeps room for its commands, orders and replies. However the bytes are cut, each
// pipeline is answered as by a connection of its own.
func TestAConnectionThatIsUsedAgainAnswersAsANewOne(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(*Server) {}, func(t *testing.T, _ *Server, addr string, _ func()) {
		draw := rand.New(rand.NewPCG(21, 1))
		other, _ := serve(t, newCounters())
		again := dial(t, addr)
		for i := range 150 {
			text, mark, most := drawnCommands(draw), fmt.Sprint("mark ", i), 1+draw.IntN(200)
			cuts := rand.New(rand.NewPCG(uint64(i), 2))
			got := again.answers(text, mark, func() int { return 1 + cuts.IntN(most) })
			one := dial(t, other)
			want := one.answers(text, mark, func() int { return len(text) + 100 })
			_ = one.conn.Close()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("pipeline %d in pieces of at most %d bytes: got\n%q\nwant\n%q\nof %q", i, most, got, want, text)
			}
		}
	})
}

func TestTwoTextsOfOneKeyAreOneKeyInAPipelineAndATransaction(t *testing.T) {
	addr, _ := serve(t, newCounters())
	c := dial(t, addr)
	c.send(array("INCR", "seq:7") + array("INCR", "seq:/7") + array("INCRBY", "seq:user/07", "3") + array("GET", "seq:/7"))
	for i, want := range []string{":1", ":2", ":5", "$5"} {
		if got := c.reply(); got != want {
			t.Errorf("reply %d: got %s, want %s", i, got, want)
		}
	}
	c.want("+OK", "MULTI")
	c.want("+QUEUED", "INCR", "seq:/7")
	c.want("+QUEUED", "INCR", "seq:7")
	c.want("*[:6 :7]", "EXEC")
}

// fewIDs refuses more than four IDs at once.
type fewIDs struct{ *counters }

func (f fewIDs) Generate(ctx context.Context, namespace string, count uint32) (client.IDs, error) {
	if count > 4 {
		return client.IDs{}, fmt.Errorf("generate: %w", seq.ErrTickUsedUp)
	}
	return f.counters.Generate(ctx, namespace, count)
}

func TestAPipelineGetsIDsThatItsNamespaceDoesNotMakeAtOnce(t *testing.T) {
	addr, _ := serve(t, fewIDs{newCounters()})
	c := dial(t, addr)
	c.send(strings.Repeat(array("INCR", "snowflake:1"), 50))
	for i := range 50 {
		if got, want := c.reply(), fmt.Sprint("$", 1<<60+i); got != want {
			t.Errorf("ID %d: got %s, want %s", i, got, want)
		}
	}
}
