package resp

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/seqsvr/seqsvr/router/line"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// session is what a connection keeps between commands.
type session struct {
	d      *dialect
	conn   *line.Conn
	parser Parser
	w      writer
	name   string
	tx     *transaction // between MULTI and EXEC, otherwise nil
}

// answer writes the reply to a local command. It is the Form of its Op.
type answer func(w *writer)

// list is the Form of an Op whose values are an array, although there may be one.
type list struct{}

// command is one that is known.
type command struct {
	min, max int // arguments after the name; a max of -1 means no limit
	read     func(s *session, args []string) line.Op
	keys     int    // number of arguments that are keys; -1 means all
	writes   bool   // takes numbers
	outside  bool   // is carried out within a transaction, not queued
	about    string // for people
}

var commands = map[string]command{
	"incr":       {min: 1, max: 1, keys: 1, writes: true, about: "takes the next number of a key", read: func(_ *session, a []string) line.Op { return increment(a[0], 1, true) }},
	"incrby":     {min: 2, max: 2, keys: 1, writes: true, about: "takes many numbers of a key, and gives the last", read: func(_ *session, a []string) line.Op { return incrementBy(a[0], a[1]) }},
	"seq.next":   {min: 1, max: 7, keys: 1, writes: true, about: "takes numbers of a key, the same again by the same ID", read: seqNext},
	"seq.lookup": {min: 3, max: 3, keys: 1, about: "gives the numbers that an ID has got", read: seqLookup},
	"seq.open":   {min: 1, max: 9, keys: 1, writes: true, about: "takes numbers of a key with a ticket", read: seqOpen},
	"seq.done":   {min: 3, max: 3, keys: 1, writes: true, about: "ends a ticket, whose numbers are committed", read: seqEnd(false)},
	"seq.cancel": {min: 3, max: 3, keys: 1, writes: true, about: "ends a ticket, whose numbers will not be committed", read: seqEnd(true)},
	"seq.mark":   {min: 1, max: -1, keys: -1, about: "gives up to which number nothing of keys is missing", read: seqMark},
	"seq.wait":   {min: 3, max: 3, keys: 1, about: "waits until the mark of a key is above a number", read: seqWait},
	"seq.raise":  {min: 2, max: 2, keys: 1, writes: true, about: "lifts a key to a number, if it is below", read: seqRaise},
	"get":        {min: 1, max: 1, keys: 1, about: "gives the last number taken of a key, or a bound above it", read: func(_ *session, a []string) line.Op { return get(a, false) }},
	"mget":       {min: 1, max: -1, keys: -1, about: "gives the last numbers taken of keys, or bounds above them", read: func(_ *session, a []string) line.Op { return get(a, true) }},
	"multi":      {outside: true, about: "begins a transaction", read: multi},
	"exec":       {outside: true, about: "carries a transaction out", read: exec},
	"discard":    {outside: true, about: "forgets a transaction", read: discard},
	"watch":      {min: 1, max: -1, keys: -1, outside: true, about: "is refused: nothing can be set", read: func(*session, []string) line.Op { return failed(errWatch) }},
	"unwatch":    {about: "does nothing", read: func(*session, []string) line.Op { return ok() }},
	"ping":       {max: 1, about: "gives PONG", read: ping},
	"echo":       {min: 1, max: 1, about: "gives its argument", read: func(_ *session, a []string) line.Op { return saysText(a[0]) }},
	"select":     {min: 1, max: 1, about: "knows database 0", read: selectDB},
	"quit":       {max: -1, outside: true, about: "ends the connection", read: func(s *session, _ []string) line.Op { s.conn.Quit(); return ok() }},
	"hello":      {max: -1, about: "chooses the protocol", read: hello},
	"auth":       {min: 1, max: 2, about: "says who calls", read: authCommand},
	"client":     {min: 1, max: -1, about: "names the connection", read: clientCommand},
	"config":     {min: 1, max: -1, about: "has no settings", read: config},
	"info":       {max: -1, about: "tells of this server", read: info},
	"cluster":    {min: 1, max: -1, about: "says that this is no cluster of Redis", read: func(*session, []string) line.Op { return failed(errCluster) }},
}

// known are the names of all commands, in order.
var known []string

func init() {
	commands["command"] = command{max: -1, about: "tells of the commands", read: describe}
	known = slices.Sorted(maps.Keys(commands))
}

// read adds what a command, of one argument at least, wants: one op, and after EXEC those that
// it carries out.
func (s *session) read(ops []line.Op, args [][]byte) []line.Op {
	if o, plain := plainIncrement(args); plain && s.tx == nil {
		o.Tally = s.d.incr
		s.conn.Authorize(&o)
		return append(ops, o)
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	name := strings.ToLower(words[0])
	c, isKnown := commands[name]
	var o line.Op
	switch n := len(words) - 1; {
	case !isKnown:
		o = failed(unknown(words))
	case n < c.min || c.max >= 0 && n > c.max:
		o = failed(fmt.Errorf("wrong number of arguments for '%s' command", name))
	case s.tx != nil && (name == "hello" || name == "auth"):
		o = failed(fmt.Errorf("%s is not allowed in transactions", strings.ToUpper(name)))
	default:
		o = c.read(s, words[1:])
	}
	o.Tally = s.d.tallies.Of(name)
	switch {
	case s.tx != nil && !c.outside:
		return append(ops, s.queue(o, args))
	case name == "exec" && o.Err == nil:
		return s.exec(ops, o)
	}
	s.conn.Authorize(&o)
	return append(ops, o)
}

// plainIncrement reads INCR seq:UID, which most connections send all the time, without making
// strings.
func plainIncrement(args [][]byte) (o line.Op, ok bool) {
	if len(args) != 2 || len(args[0]) != len("incr") || len(args[1]) <= len(seqPrefix) ||
		string(args[1][:len(seqPrefix)]) != seqPrefix || !bytes.EqualFold(args[0], []byte("incr")) {
		return line.Op{}, false
	}
	uid, err := strconv.ParseUint(string(args[1][len(seqPrefix):]), 10, 64)
	if err != nil {
		return line.Op{}, false
	}
	return line.Op{Kind: line.Take, Key: client.Key{Space: seq.DefaultSpace, UID: seq.UID(uid)}, Count: 1}, true
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
	fmt.Fprintf(&b, "; known are %s", strings.Join(known, ", "))
	return errors.New(b.String())
}

func says(a answer) line.Op    { return line.Op{Form: a} }
func ok() line.Op              { return says(func(w *writer) { w.status("OK") }) }
func failed(err error) line.Op { return line.Op{Err: err} }

// saysText says what a caller said.
func saysText(text string) line.Op {
	return tells(len(text), func(w *writer) { w.bulk(text) })
}

// tells is says of an answer that is not short.
func tells(long int, a answer) line.Op { return line.Op{Long: long, Form: a} }

// increment returns the op of a count within its bounds.
func increment(key string, count uint32, single bool) line.Op {
	switch {
	case !utf8.ValidString(key):
		return failed(errText)
	case strings.HasPrefix(key, seqPrefix):
		k, err := sequenceKey(key[len(seqPrefix):])
		if err != nil {
			return failed(err)
		}
		return line.Op{Kind: line.Take, Key: k, Count: count}
	case strings.HasPrefix(key, tagPrefix):
		return line.Op{Kind: line.TakeTag, Name: key[len(tagPrefix):], Count: count}
	case !strings.HasPrefix(key, idPrefix):
		return failed(errKey)
	case !single:
		return failed(errSingle)
	}
	return line.Op{Kind: line.TakeID, Name: key[len(idPrefix):], Count: 1}
}

func incrementBy(key, by string) line.Op {
	n, err := strconv.ParseInt(by, 10, 64)
	switch {
	case err != nil:
		return failed(errNotInteger)
	case seq.CheckCount("increment", uint64(n)) != nil: // one below 0 is far above the bound
		return failed(errIncrement)
	}
	return increment(key, uint32(n), false)
}

func get(names []string, many bool) line.Op {
	if err := seq.CheckKeys("the command", len(names)); err != nil {
		return failed(err)
	}
	o := line.Op{Kind: line.Read, Keys: make([]client.Key, len(names))}
	if many {
		o.Form = list{}
	}
	for i, name := range names {
		rest, isSeq := strings.CutPrefix(name, seqPrefix)
		switch {
		case !utf8.ValidString(name):
			return failed(errText)
		case strings.HasPrefix(name, tagPrefix), strings.HasPrefix(name, idPrefix):
			return failed(errReadOnly)
		case !isSeq:
			return failed(errKey)
		}
		k, err := sequenceKey(rest)
		if err != nil {
			return failed(err)
		}
		o.Keys[i] = k
	}
	return o
}

func ping(_ *session, args []string) line.Op {
	if len(args) == 0 {
		return says(func(w *writer) { w.status("PONG") })
	}
	return saysText(args[0])
}

// selectDB knows the one database that there is.
func selectDB(_ *session, args []string) line.Op {
	n, err := strconv.Atoi(args[0])
	switch {
	case err != nil:
		return failed(errNotInteger)
	case n != 0:
		return failed(fmt.Errorf("DB index is out of range"))
	}
	return ok()
}
