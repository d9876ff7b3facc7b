package line

import (
	"time"
	"unsafe"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// Kind is the demand of an Op on the cluster.
type Kind uint8

// The kinds of Ops.
const (
	Local    Kind = iota // nothing
	Take                 // Count numbers of Key
	TakeOnce             // the same, by the request of Once
	Lookup               // the numbers that the request of Once has got
	Read                 // the sequences of Keys
	TakeTag              // Count numbers of the tag Name
	TakeID               // a snowflake ID of the namespace Name
	Open                 // Count numbers of Key with a ticket
	Done                 // the end of the ticket of Once
	Mark                 // the marks of Keys
	Wait                 // the mark of Key once it is above After of Once, or after Within
	Raise                // Key at Floor of Once or above
)

// LongestWait bounds the Within of a Wait. Many proxies end a request after a minute.
const LongestWait = 55 * time.Second

// Op is a request in work: first the demand, and then the answer. A request may have several.
type Op struct {
	Kind  Kind
	Key   client.Key
	Name  string
	Count uint32
	Keys  []client.Key
	Once  *Once // of TakeOnce, Lookup, Open, Done, Mark, Wait and Raise; of Take if both ends of the range are wanted

	Form  any    // the dialect's own, for the reply
	Long  int    // bytes of the reply to a Local that is not short
	Tally *Tally // counts the result

	N      uint64         // the last number of a take
	Values []client.Value // of Read
	// Err is the error of the Op, or the first of its Values. A Session sets it to refuse a request.
	Err error
}

// Once is the part of an Op that few Ops have.
type Once struct {
	Request client.Request // of Open, too, if it has an ID
	Got     client.Range

	Life      time.Duration // of Open; if zero, the space's
	Ticket    client.Ticket // what Open got; Done ends its First and ID
	Cancelled bool          // of Done: the numbers will not be committed
	Marks     []client.Mark // what Mark or Wait read

	After  seq.Seq       // of Wait
	Within time.Duration // of Wait, at most LongestWait; if zero, it tells the present

	Floor   seq.Seq // of Raise
	MaxJump uint64  // of Raise: how far the caller's grant lets it go; if zero, as far as the space does
}

// waits reports whether an Op may take long. The replies before it are sent first, and it is run alone.
func (o *Op) waits() bool { return o.Kind == Wait && o.Once.Within > 0 }

var opSize = int(unsafe.Sizeof(Op{}))

// room is about how long a reply may be, in bytes.
func (o *Op) room() int {
	const number, text = 32, 1024 // a value, or an error
	if o.Err != nil {
		return text
	}
	return number*(1+len(o.Keys)) + o.Long
}

// close notes the first error of the Values as the Op's.
func (o *Op) close() {
	for _, v := range o.Values {
		if o.Err == nil {
			o.Err = v.Err
		}
	}
}
