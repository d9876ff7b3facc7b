package resp

import (
	"errors"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/seq"
)

// This file has the commands of tickets and marks.

var (
	errOpen = errors.New("syntax error, expected SEQ.OPEN seq:SPACE/UID [COUNT n] [LIFE ms] [ID id [SENT unix_ms]]")
	errLife = errors.New("LIFE must be 1 to " + strconv.Itoa(int(seq.MaxTickets.Milliseconds())) + " ms")
	errWait = errors.New("SEQ.WAIT takes a number and the ms to wait until the mark is above it, expected SEQ.WAIT seq:SPACE/UID after ms")
	errEnd  = errors.New("SEQ.DONE and SEQ.CANCEL take the first number and the ticket as SEQ.OPEN gave them")
)

// seqOpen reads SEQ.OPEN, whose answer is the first number, the last, the ticket, its life in milliseconds, and 1
// if the request had the numbers before, else 0.
func seqOpen(_ *session, args []string) line.Op {
	o, given := takeOf(args, errOpen, "count", "life", "id", "sent")
	if o.Err != nil {
		return o
	}
	if text, ok := given["life"]; ok {
		ms, err := strconv.ParseUint(text, 10, 32)
		if err != nil || ms == 0 || int64(ms) > seq.MaxTickets.Milliseconds() {
			return failed(errLife)
		}
		o.Once.Life = time.Duration(ms) * time.Millisecond
	}
	o.Kind, o.Form = line.Open, form(opened)
	return o
}

// seqEnd reads SEQ.DONE, or SEQ.CANCEL.
func seqEnd(cancelled bool) func(*session, []string) line.Op {
	return func(_ *session, args []string) line.Op {
		o := line.Op{Kind: line.Done, Once: &line.Once{Cancelled: cancelled}, Form: form(func(w *writer, _ *line.Once) { w.status("OK") })}
		if err := ofKey(&o, args[0]); err != nil {
			return failed(err)
		}
		first, err1 := strconv.ParseUint(args[1], 10, 64)
		id, err2 := strconv.ParseUint(args[2], 10, 64)
		if err1 != nil || err2 != nil {
			return failed(errEnd)
		}
		if err := seq.CheckTicket(first, id); err != nil {
			return failed(err)
		}
		o.Once.Ticket = client.Ticket{First: seq.Seq(first), ID: id}
		return o
	}
}

// markReply is about how long the answer of one key of SEQ.MARK may be.
const markReply = 100

// seqMark reads SEQ.MARK, whose answer has for each key its mark, its fence, its last number, and for how many
// milliseconds the mark is not known yet. Mark and fence are nil then.
func seqMark(_ *session, args []string) line.Op {
	if err := seq.CheckKeys("the command", len(args)); err != nil {
		return failed(err)
	}
	o := line.Op{Kind: line.Mark, Keys: make([]client.Key, len(args)), Long: markReply * len(args), Once: new(line.Once), Form: form(marked)}
	for i, name := range args {
		var one line.Op
		if err := ofKey(&one, name); err != nil {
			return failed(err)
		}
		o.Keys[i] = one.Key
	}
	return o
}

// seqWait reads SEQ.WAIT, whose answer has what SEQ.MARK says of the key, and the bound of the wait in milliseconds.
func seqWait(_ *session, args []string) line.Op {
	o := line.Op{Kind: line.Wait, Long: markReply, Once: new(line.Once), Form: form(waited)}
	if err := ofKey(&o, args[0]); err != nil {
		return failed(err)
	}
	after, err1 := strconv.ParseUint(args[1], 10, 64)
	ms, err2 := strconv.ParseUint(args[2], 10, 64)
	if err1 != nil || err2 != nil {
		return failed(errWait)
	}
	o.Once.After = seq.Seq(after)
	o.Once.Within = time.Duration(min(ms, uint64(line.LongestWait.Milliseconds()))) * time.Millisecond
	return o
}

// form writes the answer of a command of this file.
type form func(w *writer, o *line.Once)

func opened(w *writer, o *line.Once) {
	w.array(5)
	for _, n := range []uint64{uint64(o.Ticket.First), uint64(o.Ticket.Last), o.Ticket.ID, uint64(o.Ticket.Life.Milliseconds())} {
		w.integer(n)
	}
	w.flag(o.Ticket.Replayed)
}

func marked(w *writer, o *line.Once) {
	w.array(len(o.Marks))
	for _, m := range o.Marks {
		w.array(4)
		w.mark(m)
	}
}

func waited(w *writer, o *line.Once) {
	w.array(5)
	w.mark(o.Marks[0])
	w.integer(uint64(o.Within.Milliseconds()))
}

// mark writes the four fields of a mark.
func (w *writer) mark(m client.Mark) {
	if m.KnownIn > 0 {
		w.null()
		w.null()
	} else {
		w.integer(uint64(m.Seq))
		w.integer(uint64(m.Fence))
	}
	w.integer(uint64(m.Last))
	w.integer(uint64((m.KnownIn + time.Millisecond - 1) / time.Millisecond))
}
