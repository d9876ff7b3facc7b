package resp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/auth"
	"github.com/seqsvr/seqsvr/seq"
)

// kind is what a command wants from the cluster.
type kind uint8

const (
	local   kind = iota // nothing
	takeSeq             // count numbers of key
	readSeq             // the sequences of keys
	takeTag             // count numbers of the tag name
	takeID              // a snowflake ID of the namespace name
)

// op is one command on its way: what it wants, and then what it got.
type op struct {
	kind  kind
	key   client.Key
	name  string
	count uint32
	keys  []client.Key
	many  bool // the answer is an array: MGET

	tally  *tally // where it is counted
	n      uint64 // of takes: the last number
	values []client.Value
	err    error
	// answer writes the reply of a local command.
	answer func(w *writer)
}

// session is what a connection keeps between commands.
type session struct {
	id    uint64
	name  string
	quit  bool
	stats *stats

	guard  *auth.Guard
	who    auth.Who
	looked bool // who has what the connection showed
}

// command is one that is known.
type command struct {
	min, max int // arguments behind the name; max -1: any number
	read     func(s *session, args []string) op
}

var commands = map[string]command{
	"incr":    {1, 1, func(_ *session, a []string) op { return increment(a[0], 1, true) }},
	"incrby":  {2, 2, func(_ *session, a []string) op { return incrementBy(a[0], a[1]) }},
	"get":     {1, 1, func(_ *session, a []string) op { return get(a, false) }},
	"mget":    {1, -1, func(_ *session, a []string) op { return get(a, true) }},
	"ping":    {0, 1, ping},
	"echo":    {1, 1, func(_ *session, a []string) op { return says(func(w *writer) { w.bulk(a[0]) }) }},
	"select":  {1, 1, selectDB},
	"quit":    {0, -1, func(s *session, _ []string) op { s.quit = true; return ok() }},
	"hello":   {0, -1, hello},
	"auth":    {1, 2, authCommand},
	"client":  {1, -1, clientCommand},
	"command": {0, -1, describe},
	"config":  {1, -1, config},
}

// read turns arguments, at least one, into an op.
func (s *session) read(args [][]byte) op {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	name := strings.ToLower(words[0])
	c, known := commands[name]
	var o op
	switch n := len(words) - 1; {
	case !known:
		o = failed(unknown(words))
	case n < c.min || c.max >= 0 && n > c.max:
		o = failed(fmt.Errorf("wrong number of arguments for '%s' command", name))
	default:
		o = c.read(s, words[1:])
	}
	if s.guard != nil {
		o = s.authorized(o)
	}
	o.tally = s.stats.of(name)
	return o
}

func unknown(words []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "unknown command '%.128s', with args beginning with: ", words[0])
	for _, w := range words[1:] {
		if b.Len() > 256 {
			break
		}
		fmt.Fprintf(&b, "'%.64s' ", w)
	}
	return fmt.Errorf("%s", b.String())
}

func says(answer func(w *writer)) op { return op{answer: answer} }
func ok() op                         { return says(func(w *writer) { w.status("OK") }) }
func failed(err error) op            { return op{err: err} }

// increment is for a count within its bounds.
func increment(key string, count uint32, single bool) op {
	switch {
	case strings.HasPrefix(key, seqPrefix):
		k, err := sequenceKey(key[len(seqPrefix):])
		if err != nil {
			return failed(err)
		}
		return op{kind: takeSeq, key: k, count: count}
	case strings.HasPrefix(key, tagPrefix):
		return op{kind: takeTag, name: key[len(tagPrefix):], count: count}
	case !strings.HasPrefix(key, idPrefix):
		return failed(errKey)
	case !single:
		return failed(errSingle)
	}
	return op{kind: takeID, name: key[len(idPrefix):], count: 1}
}

func incrementBy(key, by string) op {
	n, err := strconv.ParseInt(by, 10, 64)
	switch {
	case err != nil:
		return failed(errNotInteger)
	case seq.CheckCount("increment", uint64(n)) != nil: // one below 0 is far above the bound
		return failed(errIncrement)
	}
	return increment(key, uint32(n), false)
}

func get(names []string, many bool) op {
	if err := seq.CheckKeys("the command", len(names)); err != nil {
		return failed(err)
	}
	o := op{kind: readSeq, many: many, keys: make([]client.Key, len(names))}
	for i, name := range names {
		rest, isSeq := strings.CutPrefix(name, seqPrefix)
		switch {
		case strings.HasPrefix(name, tagPrefix), strings.HasPrefix(name, idPrefix):
			return failed(errReadOnly)
		case !isSeq:
			return failed(errKey)
		}
		k, err := sequenceKey(rest)
		if err != nil {
			return failed(err)
		}
		o.keys[i] = k
	}
	return o
}

func ping(_ *session, args []string) op {
	if len(args) == 0 {
		return says(func(w *writer) { w.status("PONG") })
	}
	return says(func(w *writer) { w.bulk(args[0]) })
}

// selectDB knows the one database that there is.
func selectDB(_ *session, args []string) op {
	n, err := strconv.Atoi(args[0])
	switch {
	case err != nil:
		return failed(errNotInteger)
	case n != 0:
		return failed(fmt.Errorf("DB index is out of range"))
	}
	return ok()
}
