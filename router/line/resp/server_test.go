package resp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/seq"
)

func TestWhatCommandsAnswer(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	for _, tc := range []struct{ command, want string }{
		{"PING", "+PONG"},
		{"ping hello", "$hello"},
		{"ECHO x", "$x"},
		{"GET seq:42", "nil"},
		{"INCR seq:42", ":1"},
		{"incr seq:000000000042", ":2"},
		{"INCRBY seq:42 10", ":12"},
		{"INCR seq:user/42", ":13"},
		{"INCR seq:other/42", ":1"},
		{"GET seq:42", "$13"},
		{"MGET seq:42 seq:7 seq:other/42 seq:42", "*[$13 nil $1 $13]"},
		{"MGET seq:42", "*[$13]"},
		{"INCR seq:room:7", ":1"},
		{"INCRBY seq:room:7 10", ":11"},
		{"GET seq:room:7", "$11"},
		{"INCR seq:user/room:7", ":12"},
		{"INCR seq:/room:7", ":13"},
		{`INCR seq:"room:7"`, ":14"},
		{`INCR seq:user/"room:7"`, ":15"},
		{"INCR seq:other/room:7", ":1"},
		{"INCR seq:other/a/b", ":1"},
		{`INCR seq:other/"a/b"`, ":2"},
		{`INCR seq:"a/b"`, ":1"},
		{`INCR seq:"42"`, ":1"},
		{`MGET seq:42 seq:"42" seq:room:7 seq:user/42 seq:none`, "*[$13 $1 $15 $13 nil]"},
		{`INCR seq:""`, "-ERR BAD_ARGUMENT: bad argument: key of 0 bytes, expected 1 to 1024"},
		{"INCR seq:" + strings.Repeat("k", seq.MaxKey+1), "-ERR BAD_ARGUMENT: bad argument: key of 1025 bytes, expected 1 to 1024"},
		{"INCR tag:orders", ":100"},
		{"INCRBY tag:orders 5", ":105"},
		{"INCR tag:none", "-ERR UNKNOWN_TAG: unknown tag"},
		{"INCR snowflake:1", "$1152921504606846976"},
		{"INCR snowflake:9", "-ERR UNKNOWN_NAMESPACE: unknown namespace"},
		{"INCRBY snowflake:1 2", "-ERR " + errSingle.Error()},
		{"GET tag:orders", "-ERR " + errReadOnly.Error()},
		{"GET counter", "-ERR " + errKey.Error()},
		{"INCR counter", "-ERR " + errKey.Error()},
		{"INCR seq:\xff/1", "-ERR BAD_ARGUMENT: " + errText.Error()},
		{"INCRBY tag:\xff 2", "-ERR BAD_ARGUMENT: " + errText.Error()},
		{"INCR snowflake:\xff", "-ERR BAD_ARGUMENT: " + errText.Error()},
		{"MGET seq:1 seq:\xff/1", "-ERR BAD_ARGUMENT: " + errText.Error()},
		{"SEQ.NEXT seq:\xff/1", "-ERR BAD_ARGUMENT: " + errText.Error()},
		{"INCR seq:", "-ERR " + errUID.Error()},
		{"INCR seq:-1", "-ERR " + errUID.Error()},
		{"INCR seq:other/4-2", "-ERR " + errUID.Error()},
		{"INCR seq:18446744073709551616", "-ERR " + errUID.Error()},
		{"INCRBY seq:1 x", "-ERR value is not an integer or out of range"},
		{"INCRBY seq:1 0", "-ERR " + errIncrement.Error()},
		{"INCRBY seq:1 -5", "-ERR " + errIncrement.Error()},
		{"INCRBY seq:1 1048577", "-ERR " + errIncrement.Error()},
		{"INCR", "-ERR wrong number of arguments for 'incr' command"},
		{"GET a b", "-ERR wrong number of arguments for 'get' command"},
		{"MGET", "-ERR wrong number of arguments for 'mget' command"},
		{"SET seq:1 5", "-ERR unknown command 'SET', with args beginning with: 'seq:1' '5' " + knownText},
		{"flushall", "-ERR unknown command 'flushall', with args beginning with: " + knownText},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"SELECT x", "-ERR value is not an integer or out of range"},
		{"CLIENT SETINFO LIB-NAME test", "+OK"},
		{"CLIENT GETNAME", "nil"},
		{"CLIENT SETNAME me", "+OK"},
		{"CLIENT GETNAME", "$me"},
		{"CLIENT ID", ":1"},
		{"CLIENT KILL all", "-ERR unknown subcommand or wrong number of arguments for 'KILL'. Try CLIENT HELP."},
		{"COMMAND INFO incr mget SET", "*[*[$incr :2 *[+write] :1 :1 :1] *[$mget :-2 *[+readonly] :1 :-1 :1] nil]"},
		{"COMMAND DOCS PING SET", "*[$ping *[$summary $gives PONG $group $seqsvr]]"},
		{"COMMAND COUNT", ":" + strconv.Itoa(len(commands))},
		{"CONFIG GET save", "*[$save $]"},
		{"UNWATCH", "+OK"},
		{"WATCH seq:1", "-ERR " + errWatch.Error()},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"DISCARD", "-ERR DISCARD without MULTI"},
		{"CLUSTER SLOTS", "-ERR This instance has cluster support disabled"},
		{"CLUSTER INFO", "-ERR This instance has cluster support disabled"},
		{"INFO persistence", "$# Persistence\r\nloading:0\r\n"},
		{"INFO replication cluster", "$# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n"},
		{"CONFIG SET a b", "-ERR unknown subcommand or wrong number of arguments for 'SET'. Try CONFIG HELP."},
		{"AUTH secret", "-ERR " + errPassword.Error()},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO 3 AUTH default x", "-ERR " + errPassword.Error()},
		{"HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
		{"QUIT", "+OK"},
	} {
		c.Want(tc.want, strings.Fields(tc.command)...)
	}
	if _, err := c.In.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after QUIT: got %v, want the end", err)
	}
}

const knownText = "; known are auth, client, cluster, command, config, discard, echo, exec, get, hello, incr, incrby, info, mget, multi, ping, quit, select, seq.cancel, seq.done, seq.lookup, seq.mark, seq.next, seq.open, seq.raise, seq.wait, unwatch, watch"

func TestATransactionTakesItsNumbersAtExecOrNone(t *testing.T) {
	from := linetest.NewCounters()
	addr, _ := linetest.Serve(t, line.New(New(), from, nil))
	c := linetest.Dial(t, addr)
	steps := func(rows ...[2]string) {
		t.Helper()
		for _, row := range rows {
			c.Want(row[1], strings.Fields(row[0])...)
		}
	}
	steps([][2]string{
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"INCRBY seq:1 3", "+QUEUED"}, {"INCR snowflake:1", "+QUEUED"},
		{"PING", "+QUEUED"}, {"MGET seq:1 seq:2", "+QUEUED"}, {"INCR tag:none", "+QUEUED"}, {"MULTI", "-ERR " + errNested.Error()},
	}...)
	if got := from.Calls(); got != 0 {
		t.Errorf("before EXEC: got %d calls, want none", got)
	}
	steps([2]string{"EXEC", "*[:1 :4 $1152921504606846976 +PONG *[$4 nil] -ERR UNKNOWN_TAG: unknown tag]"})
	steps([][2]string{
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"DISCARD", "+OK"}, {"GET seq:1", "$4"},
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"INCR nothing", "-ERR " + errKey.Error()}, {"EXEC", "-EXECABORT " + errBroken.Error()},
		{"MULTI", "+OK"}, {"AUTH x", "-ERR AUTH is not allowed in transactions"}, {"EXEC", "-EXECABORT " + errBroken.Error()},
		{"MULTI", "+OK"}, {"EXEC", "*[]"}, {"GET seq:1", "$4"},
	}...)
	// All of a pipeline is one message of many clients.
	c.Send(linetest.Array("MULTI") + strings.Repeat(linetest.Array("INCR", "seq:7"), 3) + linetest.Array("EXEC") + linetest.Array("GET", "seq:7"))
	for i, want := range []string{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[:1 :2 :3]", "$3"} {
		if got := c.Reply(); got != want {
			t.Errorf("pipeline, reply %d: got %s, want %s", i, got, want)
		}
	}
}

func TestATransactionIsBounded(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	c.Send(linetest.Array("MULTI") + strings.Repeat(linetest.Array("INCR", "seq:7"), seq.MaxBatch+1) + linetest.Array("EXEC"))
	if got := c.Reply(); got != "+OK" {
		t.Fatal(got)
	}
	for range seq.MaxBatch {
		if got := c.Reply(); got != "+QUEUED" {
			t.Fatal(got)
		}
	}
	for _, want := range []string{"-ERR " + errLongTx.Error(), "-EXECABORT " + errBroken.Error()} {
		if got := c.Reply(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s := &session{d: newDialect(), conn: &line.Conn{}}
	s.d.queued.Store(maxQueued)
	var w writer
	for _, words := range []string{"MULTI", "PING", "EXEC"} {
		ops := s.read(nil, [][]byte{[]byte(words)})
		reply(&w, &ops[0])
	}
	if got, want := string(w.buf), "+OK\r\n-TRYAGAIN "+errManyQueued.text+"\r\n-EXECABORT "+errBroken.text+"\r\n"; got != want || s.d.queued.Load() != maxQueued {
		t.Errorf("when all connections have queued as much as they may: got %q and %d, want %q and %d", got, s.d.queued.Load(), want, maxQueued)
	}
}

func TestWhatATransactionKeepsCounts(t *testing.T) {
	var shared *gate.Budget
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) { shared = gate.NewBudget(1 << 20); s.Share(shared) }, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		c.Want("+OK", "MULTI")
		text := linetest.Array("ECHO", strings.Repeat("x", 60_000))
		for range 20 { // 1.2 MB
			if _, err := io.WriteString(c.Conn, text); err != nil {
				break
			}
		}
		if text, _ := io.ReadAll(c.In); !strings.Contains(string(text), "OVERLOADED") {
			t.Errorf("a transaction of 1.2 MB: %.200s", text)
		}
		linetest.Until(t, "all is given back", func() bool { return shared.Used() == 0 })
	})
}

func TestHelloSwitchesTheProtocolForWhatFollows(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	hello := func(proto string) string {
		c.Send(linetest.Array("HELLO", proto, "SETNAME", "me") + linetest.Array("GET", "seq:1") + linetest.Array("CLIENT", "GETNAME"))
		got := c.Reply()
		raw, err := c.In.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if name := c.Reply(); name != "$me" {
			t.Errorf("name: got %s", name)
		}
		return got[:1] + strings.TrimSpace(raw) + " " + strconv.FormatBool(strings.Contains(got, "$proto :"+proto))
	}
	for proto, want := range map[string]string{"2": "*$-1 true", "3": "%_ true"} {
		if got := hello(proto); got != want {
			t.Errorf("HELLO %s: got %s, want %s", proto, got, want)
		}
	}
}

func TestAReadSeesTheTakesBeforeItAndNoneBehind(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	c.Send(linetest.Array("INCR", "seq:5") + linetest.Array("INCR", "seq:5") + linetest.Array("GET", "seq:5") + "PING\r\n" + linetest.Array("MGET", "seq:5", "seq:6") + linetest.Array("INCR", "seq:5"))
	for i, want := range []string{":1", ":2", "$2", "+PONG", "*[$2 nil]", ":3"} {
		if got := c.Reply(); got != want {
			t.Errorf("reply %d: got %s, want %s", i, got, want)
		}
	}
}

func TestAnErrorThatWaitingMayCureSaysSo(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("next: %w", seq.ErrNoQuorum):   "TRYAGAIN NO_QUORUM: ",
		fmt.Errorf("next: %w", seq.ErrOverloaded): "TRYAGAIN OVERLOADED: ",
		context.DeadlineExceeded:                  "TRYAGAIN ",
		fmt.Errorf("next: %w", seq.ErrOverflow):   "ERR OVERFLOW: ",
		io.ErrUnexpectedEOF:                       "ERR " + io.ErrUnexpectedEOF.Error(),
	} {
		if got := faultText(err); !strings.HasPrefix(got, want) {
			t.Errorf("%v: got %q, want %q ...", err, got, want)
		}
	}
	w := writer{}
	w.fault("ERR a\r\nb")
	if got, want := string(w.buf), "-ERR a  b\r\n"; got != want {
		t.Errorf("error with line ends: got %q, want %q", got, want)
	}
}

func TestAProtocolErrorIsToldAndEndsTheConnectionAlone(t *testing.T) {
	addr, _ := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c, other := linetest.Dial(t, addr), linetest.Dial(t, addr)
	c.Send(linetest.Array("INCR", "seq:1") + "*1\r\n!\r\n")
	if got := c.Reply(); got != ":1" {
		t.Errorf("before it: got %s", got)
	}
	if got, want := c.Reply(), "-ERR Protocol error: expected '$', got '!'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := c.In.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after it: got %v, want the end", err)
	}
	other.Want(":2", "INCR", "seq:1")
}

func TestAServerThatStopsAnswersWhatItHasAndEndsIdleConnections(t *testing.T) {
	addr, stop := linetest.Serve(t, line.New(New(), linetest.NewCounters(), nil))
	c := linetest.Dial(t, addr)
	c.Want(":1", "INCR", "seq:1")
	stop()
	if _, err := c.In.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: got %v, want the end", err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("a stopped server still accepts")
	}
}

func TestAFailingClusterFailsEveryCommandOfAPipeline(t *testing.T) {
	from := linetest.NewCounters()
	from.Fail(seq.ErrNoQuorum)
	addr, _ := linetest.Serve(t, line.New(New(), from, nil))
	c := linetest.Dial(t, addr)
	c.Send(linetest.Array("INCR", "seq:1") + linetest.Array("INCR", "seq:2") + linetest.Array("INCR", "tag:orders") + linetest.Array("INCR", "snowflake:1") + linetest.Array("GET", "seq:1") + linetest.Array("MGET", "seq:1", "seq:2"))
	for i := range 6 {
		if got := c.Reply(); !strings.HasPrefix(got, "-TRYAGAIN NO_QUORUM") {
			t.Errorf("command %d: got %s", i, got)
		}
	}
}
