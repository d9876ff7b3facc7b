package resp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// counters are Numbers in memory, which count the calls.
type counters struct {
	mu    sync.Mutex // guards all below
	seqs  map[client.Key]uint64
	tags  map[string]uint64
	once  map[request]client.Range
	ids   uint64
	calls int
	fault error
}

func newCounters() *counters {
	return &counters{seqs: map[client.Key]uint64{}, tags: map[string]uint64{"orders": 100}, once: map[request]client.Range{}}
}

func (c *counters) enter() (leave func(), err error) {
	c.mu.Lock()
	c.calls++
	return c.mu.Unlock, c.fault
}

func (c *counters) take(key client.Key, n uint32) client.Range {
	first := c.seqs[key] + 1
	c.seqs[key] += uint64(n)
	return client.Range{First: seq.Seq(first), Last: seq.Seq(c.seqs[key])}
}

func (c *counters) Take(_ context.Context, key client.Key, n uint32) (client.Range, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return client.Range{Err: err}, err
	}
	return c.take(key, n), nil
}

func (c *counters) NextBatchIdempotent(_ context.Context, space string, uids []seq.UID, counts []uint32, requests []client.Request) ([]client.Range, error) {
	leave, err := c.enter()
	defer leave()
	if len(requests) > 0 && space != "orders" {
		err = seq.ErrIDNotKept
	}
	if space == "none" {
		err = seq.ErrUnknownSpace
	}
	if err != nil {
		return nil, err
	}
	out := make([]client.Range, len(uids))
	for i, uid := range uids {
		if uid == 13 {
			out[i].Err = fmt.Errorf("next: %w", seq.ErrOverflow)
			continue
		}
		key := client.Key{Space: space, UID: uid}
		if len(requests) == 0 {
			out[i] = c.take(key, counts[i])
			continue
		}
		had, again := c.once[request{key, requests[i].ID}]
		switch {
		case again && uint64(had.Last-had.First) != uint64(counts[i])-1:
			out[i].Err = &seq.IDConflict{First: had.First, Count: uint32(had.Last - had.First + 1), Asked: counts[i]}
		case again:
			had.Replayed = true
			out[i] = had
		default:
			out[i] = c.take(key, counts[i])
			c.once[request{key, requests[i].ID}] = out[i]
		}
	}
	return out, nil
}

// request is a take by a request of an exact space, orders.
type request struct {
	key client.Key
	id  string
}

func (c *counters) Lookup(_ context.Context, key client.Key, id string) (client.Range, bool, error) {
	leave, err := c.enter()
	defer leave()
	got, found := c.once[request{key, id}]
	return got, found, err
}

func (c *counters) Current(_ context.Context, space string, uids []seq.UID) ([]client.Value, error) {
	leave, err := c.enter()
	defer leave()
	if err != nil {
		return nil, err
	}
	out := make([]client.Value, len(uids))
	for i, uid := range uids {
		out[i].Seq = seq.Seq(c.seqs[client.Key{Space: space, UID: uid}])
	}
	return out, nil
}

func (c *counters) Generate(_ context.Context, namespace string, count uint32) (client.IDs, error) {
	leave, err := c.enter()
	defer leave()
	if namespace != "1" {
		err = seq.ErrUnknownNamespace
	}
	if err != nil {
		return client.IDs{}, err
	}
	first := snowflake.ID(1<<60 + c.ids)
	c.ids += uint64(count)
	return client.IDs{Runs: []snowflake.Run{{First: first, Last: first + snowflake.ID(count) - 1, Stride: 1}}}, nil
}

func (c *counters) TakeSegment(_ context.Context, tag string, count uint32) (first, last seq.Seq, err error) {
	leave, err := c.enter()
	defer leave()
	n, known := c.tags[tag]
	if !known {
		err = seq.ErrUnknownTag
	}
	if err != nil {
		return 0, 0, err
	}
	c.tags[tag] = n + uint64(count)
	return seq.Seq(n), seq.Seq(n + uint64(count) - 1), nil
}

func (c *counters) Begin(ctx context.Context, orders ...*stream.Order) {
	for _, o := range orders {
		go func() {
			counts := o.Counts
			if len(counts) == 0 {
				counts = slices.Repeat([]uint32{1}, len(o.UIDs))
			}
			got, err := c.NextBatchIdempotent(ctx, o.Space, o.UIDs, counts, nil)
			if o.Ranges = got; err != nil {
				o.Ranges = slices.Repeat([]client.Range{{Err: err}}, len(o.UIDs))
			}
			o.Done()
		}()
	}
}

// Leave implements Place.
func (c *counters) Leave() {}

func (c *counters) Admit(context.Context, *stream.Order) (Place, error) { return c, nil }

// caller is one connection to a server of its own.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

const bound = 20 * time.Second

func serve(t *testing.T, from Numbers) (addr string, stop func() error) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(NewDialect(), from, nil).Serve(ctx, lis, bound) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return lis.Addr().String(), stop
}

func dial(t *testing.T, addr string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one reply: "+OK", ":7", "$text", "-ERR ...", "nil", "[a b]".
func (c *caller) reply() string {
	c.t.Helper()
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("reply: %v after %q", err, line)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch {
	case line == "$-1" || line == "*-1" || line == "_":
		return "nil"
	case line[0] == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, text); err != nil {
			c.t.Fatal(err)
		}
		return "$" + string(text[:n])
	case line[0] == '*' || line[0] == '%':
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i] = c.reply()
		}
		return line[:1] + "[" + strings.Join(parts, " ") + "]"
	}
	return line
}

func (c *caller) want(want string, words ...string) {
	c.t.Helper()
	c.send(array(words...))
	if got := c.reply(); got != want {
		c.t.Errorf("%q: got %s, want %s", words, got, want)
	}
}

func TestWhatCommandsAnswer(t *testing.T) {
	addr, _ := serve(t, newCounters())
	c := dial(t, addr)
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
		c.want(tc.want, strings.Fields(tc.command)...)
	}
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after QUIT: got %v, want the end", err)
	}
}

const knownText = "; known are auth, client, cluster, command, config, discard, echo, exec, get, hello, incr, incrby, info, mget, multi, ping, quit, select, seq.lookup, seq.next, unwatch, watch"

func TestATransactionTakesItsNumbersAtExecOrNone(t *testing.T) {
	from := newCounters()
	addr, _ := serve(t, from)
	c := dial(t, addr)
	steps := func(rows ...[2]string) {
		t.Helper()
		for _, row := range rows {
			c.want(row[1], strings.Fields(row[0])...)
		}
	}
	steps([][2]string{
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"INCRBY seq:1 3", "+QUEUED"}, {"INCR snowflake:1", "+QUEUED"},
		{"PING", "+QUEUED"}, {"MGET seq:1 seq:2", "+QUEUED"}, {"INCR tag:none", "+QUEUED"}, {"MULTI", "-ERR " + errNested.Error()},
	}...)
	from.mu.Lock()
	if from.calls != 0 {
		t.Errorf("before EXEC: got %d calls, want none", from.calls)
	}
	from.mu.Unlock()
	steps([2]string{"EXEC", "*[:1 :4 $1152921504606846976 +PONG *[$4 nil] -ERR UNKNOWN_TAG: unknown tag]"})
	steps([][2]string{
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"DISCARD", "+OK"}, {"GET seq:1", "$4"},
		{"MULTI", "+OK"}, {"INCR seq:1", "+QUEUED"}, {"INCR nothing", "-ERR " + errKey.Error()}, {"EXEC", "-EXECABORT " + errBroken.Error()},
		{"MULTI", "+OK"}, {"AUTH x", "-ERR AUTH is not allowed in transactions"}, {"EXEC", "-EXECABORT " + errBroken.Error()},
		{"MULTI", "+OK"}, {"EXEC", "*[]"}, {"GET seq:1", "$4"},
	}...)
	// All of a pipeline is one message of many clients.
	c.send(array("MULTI") + strings.Repeat(array("INCR", "seq:7"), 3) + array("EXEC") + array("GET", "seq:7"))
	for i, want := range []string{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*[:1 :2 :3]", "$3"} {
		if got := c.reply(); got != want {
			t.Errorf("pipeline, reply %d: got %s, want %s", i, got, want)
		}
	}
}

func TestATransactionIsBounded(t *testing.T) {
	addr, _ := serve(t, newCounters())
	c := dial(t, addr)
	c.send(array("MULTI") + strings.Repeat(array("INCR", "seq:7"), seq.MaxBatch+1) + array("EXEC"))
	if got := c.reply(); got != "+OK" {
		t.Fatal(got)
	}
	for range seq.MaxBatch {
		if got := c.reply(); got != "+QUEUED" {
			t.Fatal(got)
		}
	}
	for _, want := range []string{"-ERR " + errLongTx.Error(), "-EXECABORT " + errBroken.Error()} {
		if got := c.reply(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s := &session{d: newDialect(), conn: &Conn{}}
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

func TestHelloSwitchesTheProtocolForWhatFollows(t *testing.T) {
	addr, _ := serve(t, newCounters())
	c := dial(t, addr)
	hello := func(proto string) string {
		c.send(array("HELLO", proto, "SETNAME", "me") + array("GET", "seq:1") + array("CLIENT", "GETNAME"))
		got := c.reply()
		raw, err := c.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if name := c.reply(); name != "$me" {
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

func TestAPipelineIsAFewCallsAndAnsweredInOrder(t *testing.T) {
	from := newCounters()
	var ops []Op
	s := &session{d: newDialect(), conn: &Conn{}}
	add := func(n int, words ...string) {
		args := make([][]byte, len(words))
		for i, w := range words {
			args[i] = []byte(w)
		}
		for range n {
			ops = s.read(ops, args)
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
	run(context.Background(), from, ops)
	if got, want := from.calls, 4; got != want {
		t.Errorf("calls for %d commands: got %d, want %d", len(ops), got, want)
	}
	var w writer
	for i := range ops {
		reply(&w, &ops[i])
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
	if got := string(w.buf); got != want.String() {
		t.Errorf("replies: got\n%.2000s\nwant\n%.2000s", got, want.String())
	}
}

func TestAReadSeesTheTakesBeforeItAndNoneBehind(t *testing.T) {
	addr, _ := serve(t, newCounters())
	c := dial(t, addr)
	c.send(array("INCR", "seq:5") + array("INCR", "seq:5") + array("GET", "seq:5") + "PING\r\n" + array("MGET", "seq:5", "seq:6") + array("INCR", "seq:5"))
	for i, want := range []string{":1", ":2", "$2", "+PONG", "*[$2 nil]", ":3"} {
		if got := c.reply(); got != want {
			t.Errorf("reply %d: got %s, want %s", i, got, want)
		}
	}
}

func TestManyTagTakesAreSplitWhereTheirSumIsTooLarge(t *testing.T) {
	from := newCounters()
	ops := []Op{{Kind: TakeTag, Name: "orders", Count: seq.MaxCount}, {Kind: TakeTag, Name: "orders", Count: 5}, {Kind: TakeTag, Name: "orders", Count: 6}}
	run(context.Background(), from, ops)
	for i, want := range []uint64{99 + seq.MaxCount, 104 + seq.MaxCount, 110 + seq.MaxCount} {
		if ops[i].N != want || ops[i].Err != nil {
			t.Errorf("take %d: got %d, %v, want %d", i, ops[i].N, ops[i].Err, want)
		}
	}
	if from.calls != 2 {
		t.Errorf("calls: got %d, want 2", from.calls)
	}
}

func TestAnErrorThatWaitingMayCureSaysSo(t *testing.T) {
	for err, want := range map[error]string{
		fmt.Errorf("next: %w", seq.ErrNoQuorum):   "TRYAGAIN NO_QUORUM: ",
		fmt.Errorf("next: %w", seq.ErrOverloaded): "TRYAGAIN OVERLOADED: ",
		context.DeadlineExceeded:                  "TRYAGAIN ",
		fmt.Errorf("next: %w", seq.ErrOverflow):   "ERR OVERFLOW: ",
		errGone:                                   "ERR " + errGone.Error(),
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
	addr, _ := serve(t, newCounters())
	c, other := dial(t, addr), dial(t, addr)
	c.send(array("INCR", "seq:1") + "*1\r\n!\r\n")
	if got := c.reply(); got != ":1" {
		t.Errorf("before it: got %s", got)
	}
	if got, want := c.reply(), "-ERR Protocol error: expected '$', got '!'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after it: got %v, want the end", err)
	}
	other.want(":2", "INCR", "seq:1")
}

func TestAServerThatStopsAnswersWhatItHasAndEndsIdleConnections(t *testing.T) {
	addr, stop := serve(t, newCounters())
	c := dial(t, addr)
	c.want(":1", "INCR", "seq:1")
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := c.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("idle connection: got %v, want the end", err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		t.Error("a stopped server still accepts")
	}
}

func TestAFailingClusterFailsEveryCommandOfAPipeline(t *testing.T) {
	from := newCounters()
	from.fault = seq.ErrNoQuorum
	addr, _ := serve(t, from)
	c := dial(t, addr)
	c.send(array("INCR", "seq:1") + array("INCR", "seq:2") + array("INCR", "tag:orders") + array("INCR", "snowflake:1") + array("GET", "seq:1") + array("MGET", "seq:1", "seq:2"))
	for i := range 6 {
		if got := c.reply(); !strings.HasPrefix(got, "-TRYAGAIN NO_QUORUM") {
			t.Errorf("command %d: got %s", i, got)
		}
	}
}
