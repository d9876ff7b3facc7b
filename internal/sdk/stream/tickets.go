package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrUnary is the error of a TicketCall that must be made by a unary call. The server has done nothing for it.
var ErrUnary = errors.New("the server takes this call by itself only")

// TicketCall is an Open or a Done of one key. The calls of many callers travel in one message.
type TicketCall struct {
	Key  seq.Key
	Done bool // else an Open

	Count   uint32   // of an Open
	LifeMs  uint64   // of an Open; zero means the longest of the space
	Request *Request // of an Open; if nil, it has no id

	// Of a Done; and the answer to an Open, with the last number, the life that the ticket has, and whether the
	// request had the numbers before.
	First, Ticket uint64
	Cancelled     bool
	Last          uint64
	Replayed      bool

	space        *seq.Space
	group, index int // where it stands in its message
	err          error
}

// Tickets makes the call in the next message of a stream, with the calls of other callers. If it returns an error,
// the call may have been carried out, unless the error is ErrUnary. After ctx has ended, the call is not the
// caller's any more.
func (p *Pair) Tickets(ctx context.Context, space *seq.Space, t *TicketCall) error {
	if p.unary.Load() {
		return ErrUnary
	}
	t.space = space
	k := p.balance.pick()
	b, err := p.streams[k].enqueueTicket(t, p.room(k))
	if err == ErrFull {
		b, err = p.streams[1-k].enqueueTicket(t, p.room(1-k))
	}
	if err != nil {
		return err
	}
	if !b.wait(ctx) {
		return ctx.Err()
	}
	if b.err != nil {
		return b.err
	}
	return t.err
}

// enqueueTicket gives a call a place in the last batch of its kind.
func (s *stream) enqueueTicket(t *TicketCall, limit int) (*batch, error) {
	s.mu.Lock()
	if err := s.accepts(1, limit); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	var b *batch
	for i := len(s.queue) - 1; i >= 0 && b == nil; i-- {
		if one := s.queue[i]; one.tickets != nil && one.n < seq.MaxBatch {
			b = one
		}
	}
	if b == nil {
		b = &batch{done: make(chan struct{})}
		s.queue = append(s.queue, b)
	}
	b.tickets, b.n = append(b.tickets, t), b.n+1
	b.leaseless = b.leaseless || t.space.Mode.Leaseless()
	s.unlockAndWake(1)
	return b, nil
}

// sameGroup reports whether two calls stand in one batch of their message.
func sameGroup(a, b *TicketCall) bool {
	_, named := a.Key.Name()
	_, also := b.Key.Name()
	return a.Done == b.Done && a.space.First == b.space.First && named == also && a.LifeMs == b.LifeMs && (a.Request == nil) == (b.Request == nil)
}

// ticketsRequest is the message of a batch of calls with tickets.
func (b *batch) ticketsRequest(version uint64) *pb.StreamRequest_Tickets {
	out := &pb.TicketsRequest{RouteVersion: version}
	var firsts []*TicketCall // of each group
	for _, t := range b.tickets {
		g := slices.IndexFunc(firsts, func(first *TicketCall) bool { return sameGroup(first, t) })
		if g < 0 {
			g, firsts = len(firsts), append(firsts, t)
			keys := &pb.Batch{Space: t.space.Name}
			if t.Done {
				t.group, out.Dones = len(out.Dones), append(out.Dones, &pb.DoneBatch{Keys: keys})
			} else {
				t.group, out.Opens = len(out.Opens), append(out.Opens, &pb.OpenBatch{Keys: keys, LifeMs: t.LifeMs})
			}
		}
		t.group = firsts[g].group
		if t.Done {
			t.addDone(out.Dones[t.group])
		} else {
			t.addOpen(out.Opens[t.group].Keys)
		}
	}
	return &pb.StreamRequest_Tickets{Tickets: out}
}

// addKey adds the key of the call.
func (t *TicketCall) addKey(to *pb.Batch) {
	t.index = len(to.Uids) + len(to.Keys)
	if name, named := t.Key.Name(); named {
		to.Keys = append(to.Keys, name)
	} else {
		to.Uids = append(to.Uids, uint64(t.Key.UID))
	}
}

func (t *TicketCall) addOpen(to *pb.Batch) {
	t.addKey(to)
	if t.Count != 1 || len(to.Counts) > 0 {
		for len(to.Counts) < t.index {
			to.Counts = append(to.Counts, 1)
		}
		to.Counts = append(to.Counts, t.Count)
	}
	if t.Request != nil {
		to.RequestIds, to.FirstSentMs = append(to.RequestIds, t.Request.ID), append(to.FirstSentMs, t.Request.Sent)
	}
}

func (t *TicketCall) addDone(to *pb.DoneBatch) {
	t.addKey(to.Keys)
	to.First, to.Tickets = append(to.First, t.First), append(to.Tickets, t.Ticket)
	if t.Cancelled || len(to.Cancelled) > 0 {
		for len(to.Cancelled) < t.index {
			to.Cancelled = append(to.Cancelled, false)
		}
		to.Cancelled = append(to.Cancelled, t.Cancelled)
	}
}

// answerTickets completes a batch of calls with tickets. It reports whether the server knows them.
func (b *batch) answerTickets(reply *pb.StreamReply) (known bool) {
	switch k := reply.GetError(); {
	case k.GetCode() == pb.ErrorCode_ERROR_CODE_BAD_ARGUMENT:
		b.fail(ErrUnary)
		return false
	case k != nil:
		b.fail(rpc.FromKeyError(k))
		return true
	}
	got := reply.GetTickets()
	opens, dones := make([][]error, len(got.GetOpens())), make([][]error, len(got.GetDones()))
	for i, r := range got.GetOpens() {
		opens[i] = KeyErrors(r.GetNumbers().GetErrors(), b.n)
	}
	for i, r := range got.GetDones() {
		dones[i] = KeyErrors(r.GetErrors(), b.n)
	}
	for _, t := range b.tickets {
		switch {
		case t.Done && t.group < len(dones):
			t.ended(got.Dones[t.group], dones[t.group])
		case !t.Done && t.group < len(opens):
			t.opened(got.Opens[t.group], opens[t.group])
		default:
			t.err = errNoResult
		}
	}
	b.complete()
	return true
}

func (t *TicketCall) ended(r *pb.DoneResult, errs []error) {
	switch {
	case r.GetApart():
		t.err = ErrUnary
	case errs != nil:
		t.err = errs[t.index]
	}
}

func (t *TicketCall) opened(r *pb.OpenResult, errs []error) {
	if r.GetApart() {
		t.err = ErrUnary
		return
	}
	var ticket uint64
	if t.index < len(r.GetTickets()) {
		ticket = r.Tickets[t.index]
	}
	t.err = t.Opened(RangeOf(r.GetNumbers(), t.index, t.Count, errs), ticket, r.GetLifeMs())
}

// Opened notes the answer to an Open, and returns its error.
func (t *TicketCall) Opened(got seq.Range, ticket, lifeMs uint64) error {
	if got.Err == nil && (ticket == 0 || lifeMs == 0) {
		got.Err = fmt.Errorf("%w: no ticket", ErrMalformed)
	}
	t.First, t.Last, t.Ticket, t.LifeMs, t.Replayed = uint64(got.First), uint64(got.Last), ticket, lifeMs, got.Replayed
	return got.Err
}

// Life returns the life of the ticket that an Open got.
func (t *TicketCall) Life() time.Duration {
	return time.Duration(min(t.LifeMs, math.MaxInt32)) * time.Millisecond
}
