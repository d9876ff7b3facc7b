package resp

import (
	"errors"
	"fmt"
	"github.com/seqsvr/seqsvr/router/line"
	"unsafe"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// transaction is the commands between MULTI and EXEC. Nothing is taken before EXEC; what EXEC
// takes it takes as a pipeline does, each command with its own answer, and others may take
// between them.
type transaction struct {
	ops    []line.Op
	size   int  // commands and their keys
	bytes  int  // what they take of memory
	broken bool // a command was refused: so will be EXEC
}

// maxQueued bounds the transactions of all connections, in commands and keys.
const maxQueued = 1 << 20

var (
	errNested     = errors.New("MULTI calls can not be nested")
	errNoMulti    = errors.New("EXEC without MULTI")
	errNoDiscard  = errors.New("DISCARD without MULTI")
	errWatch      = errors.New("WATCH is not supported: numbers only rise, and nothing can be set by what was read")
	errCluster    = errors.New("This instance has cluster support disabled")
	errBroken     = &codedError{"EXECABORT", "Transaction discarded because of previous errors."}
	errLongTx     = fmt.Errorf("transaction too long, expected at most %d commands and keys", seq.MaxBatch)
	errManyQueued = &codedError{"TRYAGAIN", fmt.Sprintf("OVERLOADED: all connections have queued %d commands in transactions", maxQueued)}
)

func multi(s *session, _ []string) line.Op {
	if s.tx != nil {
		return failed(errNested)
	}
	s.tx = &transaction{}
	return ok()
}

func discard(s *session, _ []string) line.Op {
	if s.tx == nil {
		return failed(errNoDiscard)
	}
	s.forget()
	return ok()
}

// forget ends a transaction.
func (s *session) forget() {
	if s.tx != nil {
		s.d.queued.Add(int64(-s.tx.size))
		s.tx = nil
	}
}

// queue keeps a command for EXEC. It may be one that cannot be carried out: then that is its
// answer, and the transaction is broken.
func (s *session) queue(o line.Op, args [][]byte) line.Op {
	size, bytes := 1+len(o.Keys), int(unsafe.Sizeof(o))+len(o.Keys)*int(unsafe.Sizeof(client.Key{}))
	for _, a := range args {
		bytes += len(a) + int(unsafe.Sizeof(""))
	}
	switch {
	case o.Err != nil:
	case o.Kind == line.Wait && o.Once.Within > 0:
		o.Once.Within = 0 // EXEC holds no connection, as in Redis
		return s.queue(o, args)
	case s.tx.size+size > seq.MaxBatch:
		o = line.Op{Err: errLongTx, Tally: o.Tally}
	case s.d.queued.Add(int64(size)) > maxQueued:
		s.d.queued.Add(int64(-size))
		o = line.Op{Err: errManyQueued, Tally: o.Tally}
	default:
		s.tx.ops, s.tx.size, s.tx.bytes = append(s.tx.ops, o), s.tx.size+size, s.tx.bytes+bytes
		return line.Op{Tally: s.d.tallies[line.Queued], Form: answer(func(w *writer) { w.status("QUEUED") })}
	}
	s.tx.broken = true
	return o
}

func exec(s *session, _ []string) line.Op {
	if s.tx == nil {
		return failed(errNoMulti)
	}
	return line.Op{} // read does it
}

// exec adds the head of the answer to EXEC and the queued commands, whose answers follow it. All
// of them must be allowed, or none is carried out.
func (s *session) exec(ops []line.Op, head line.Op) []line.Op {
	tx := s.tx
	s.forget()
	if tx.broken {
		head.Err = errBroken
		return append(ops, head)
	}
	for i := range tx.ops {
		if s.conn.Authorize(&tx.ops[i]); tx.ops[i].Err != nil {
			head.Err = &codedError{"EXECABORT", "Transaction discarded because of: " + faultText(tx.ops[i].Err)}
			return append(ops, head)
		}
	}
	head.Form = answer(func(w *writer) { w.array(len(tx.ops)) })
	return append(append(ops, head), tx.ops...)
}
