package resp

import (
	"errors"
	"fmt"
	"github.com/seqsvr/seqsvr/router/line"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/seq"
)

// This file has the commands of which Redis has nothing: takes that may be repeated, and raises.

var (
	errNext   = errors.New("syntax error, expected SEQ.NEXT seq:SPACE/UID [COUNT n] [ID id [SENT unix_ms]]")
	errLookup = errors.New("syntax error, expected SEQ.LOOKUP seq:SPACE/UID ID id")
	errRaise  = errors.New("SEQ.RAISE takes the number to reach, expected SEQ.RAISE seq:SPACE/UID number")
	errSeqKey = errors.New("only seq: keys have requests, expected seq:UID, seq:KEY, or either behind SPACE/")
	errCount  = errors.New("COUNT must be 1 to " + strconv.Itoa(seq.MaxCount))
)

// seqNext reads SEQ.NEXT, whose answer is the first number, the last, and 1 if the request had
// them before, else 0.
func seqNext(_ *session, args []string) line.Op {
	o, _ := takeOf(args, errNext, "count", "id", "sent")
	if o.Err == nil && o.Once.Request.ID != "" {
		o.Kind = line.TakeOnce
	}
	return o
}

// takeOf reads a key and options, of which words are known, and returns the options too.
func takeOf(args []string, syntax error, words ...string) (line.Op, map[string]string) {
	o := line.Op{Kind: line.Take, Count: 1, Once: new(line.Once)}
	if err := ofKey(&o, args[0]); err != nil {
		return failed(err), nil
	}
	given := map[string]string{}
	for i := 1; i < len(args); i += 2 {
		word := strings.ToLower(args[i])
		if _, twice := given[word]; twice || i+1 == len(args) || !slices.Contains(words, word) {
			return failed(syntax), nil
		}
		given[word] = args[i+1]
	}
	if err := ofOptions(&o, given, syntax); err != nil {
		return failed(err), nil
	}
	return o, given
}

// ofOptions sets what COUNT, ID and SENT say.
func ofOptions(o *line.Op, given map[string]string, syntax error) error {
	if text, ok := given["count"]; ok {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || seq.CheckCount("COUNT", n) != nil {
			return errCount
		}
		o.Count = uint32(n)
	}
	id, named := given["id"]
	sent, timed := given["sent"]
	switch {
	case timed && !named:
		return syntax
	case !named:
		return nil
	}
	if err := seq.CheckRequestID("ID", id); err != nil { // here, since a transaction keeps it
		return err
	}
	o.Once.Request.ID = id
	if timed {
		ms, err := strconv.ParseInt(sent, 10, 64)
		if err != nil {
			return fmt.Errorf("SENT: %w", errNotInteger)
		}
		o.Once.Request.Sent = time.UnixMilli(ms)
	}
	return nil
}

// seqLookup reads SEQ.LOOKUP, whose answer is the first number and the last, or nil.
func seqLookup(_ *session, args []string) line.Op {
	o := line.Op{Kind: line.Lookup, Once: new(line.Once)}
	if !strings.EqualFold(args[1], "id") {
		return failed(errLookup)
	}
	if err := seq.CheckRequestID("ID", args[2]); err != nil {
		return failed(err)
	}
	o.Once.Request.ID = args[2]
	if err := ofKey(&o, args[0]); err != nil {
		return failed(err)
	}
	return o
}

// seqRaise reads SEQ.RAISE, whose answer is the number that the key has reached.
func seqRaise(_ *session, args []string) line.Op {
	o := line.Op{Kind: line.Raise, Once: new(line.Once), Form: form(func(w *writer, o *line.Once) { w.integer(uint64(o.Got.Last)) })}
	if err := ofKey(&o, args[0]); err != nil {
		return failed(err)
	}
	floor, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return failed(errRaise)
	}
	if err := seq.CheckFloor("number", floor); err != nil {
		return failed(err)
	}
	o.Once.Floor = seq.Seq(floor)
	return o
}

func ofKey(o *line.Op, name string) (err error) {
	if !utf8.ValidString(name) {
		return errText
	}
	rest, isSeq := strings.CutPrefix(name, seqPrefix)
	if !isSeq {
		return errSeqKey
	}
	o.Key, err = sequenceKey(rest)
	return err
}

// numbers is the reply of a command of this file.
func numbers(w *writer, o *line.Op) {
	switch got := o.Once.Got; {
	case got.First == 0:
		w.null()
	case o.Kind == line.Lookup:
		w.array(2)
		w.integer(uint64(got.First))
		w.integer(uint64(got.Last))
	default:
		w.array(3)
		w.integer(uint64(got.First))
		w.integer(uint64(got.Last))
		w.flag(got.Replayed)
	}
}
