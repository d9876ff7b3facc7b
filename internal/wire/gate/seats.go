package gate

import (
	"container/list"
	"context"
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"sync"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Seats bounds the connections of one listener. If all seats are taken, a new connection gets the
// seat of the connection that has waited longest without a call. If there is none, it gets a seat of
// the address that has more than half of them. Safe for concurrent use.
type Seats struct {
	refused *rpc.Refused

	mu     sync.Mutex // guards all below
	most   int
	quiet  int       // seats of connections without a call
	all    list.List // of *Seat, the oldest first
	silent list.List // those without a call, likewise
	by     map[string]int
}

// Seat is the place of one connection.
type Seat struct {
	of      *Seats
	address string

	// Guarded by the mutex of Seats.
	end         func() // closes the connection; it does not block
	all, silent *list.Element
	gone        bool
}

// NewSeats returns at most so many seats. It counts the connections that it closes at refused,
// which may be nil.
func NewSeats(most int, refused *rpc.Refused) *Seats {
	return &Seats{refused: refused, most: most, quiet: most, by: map[string]int{}}
}

// silentSeats returns seats without a bound, except for connections that have had no call: at most so many.
func silentSeats(quiet int, refused *rpc.Refused) *Seats {
	s := NewSeats(math.MaxInt, refused)
	s.quiet = quiet
	return s
}

// SetMost changes the number of seats for new connections.
func (s *Seats) SetMost(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.quiet = most, most
}

// Taken returns how many seats are taken.
func (s *Seats) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Len()
}

// Most returns how many seats there are.
func (s *Seats) Most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Take returns a seat for a connection of the address, host:port, or nil if there is none. Another
// connection may be closed for it.
func (s *Seats) Take(address string) *Seat {
	seat := &Seat{of: s, address: rpc.Host(address)}
	s.mu.Lock()
	var other *Seat
	var end func()
	full := s.all.Len() >= s.most || s.silent.Len() >= s.quiet
	if full {
		if other = s.yields(seat.address); other != nil {
			end = other.leave()
		}
	}
	taken := !full || other != nil
	if taken {
		seat.all, seat.silent = s.all.PushBack(seat), s.silent.PushBack(seat)
		s.by[seat.address]++
	}
	s.mu.Unlock()
	if end != nil {
		end()
	}
	switch {
	case !taken:
		s.refused.Note(rpc.RefusedConnections, seat.address)
		return nil
	case other != nil:
		s.refused.Note(rpc.RefusedConnections, other.address)
	}
	return seat
}

// yields returns the seat that a new connection of the address gets, or nil.
func (s *Seats) yields(address string) *Seat {
	if oldest := s.silent.Front(); oldest != nil {
		return oldest.Value.(*Seat)
	}
	for e := s.all.Front(); e != nil; e = e.Next() {
		if seat := e.Value.(*Seat); seat.address != address && s.by[seat.address] > s.most/2 {
			return seat
		}
	}
	return nil
}

// EndBy says how the connection is closed, if another one gets its seat. end must not block.
func (seat *Seat) EndBy(end func()) {
	seat.of.mu.Lock()
	gone := seat.gone
	seat.end = end
	seat.of.mu.Unlock()
	if gone {
		end()
	}
}

// Called notes that the connection has had a call.
func (seat *Seat) Called() {
	seat.of.mu.Lock()
	defer seat.of.mu.Unlock()
	if seat.silent != nil {
		seat.of.silent.Remove(seat.silent)
		seat.silent = nil
	}
}

// Leave gives the seat back. It is safe to call twice.
func (seat *Seat) Leave() {
	seat.of.mu.Lock()
	defer seat.of.mu.Unlock()
	seat.leave()
}

// leave returns how the connection is closed.
func (seat *Seat) leave() (end func()) {
	if seat.gone {
		return nil
	}
	s := seat.of
	seat.gone = true
	s.all.Remove(seat.all)
	if seat.silent != nil {
		s.silent.Remove(seat.silent)
		seat.silent = nil
	}
	if s.by[seat.address]--; s.by[seat.address] == 0 {
		delete(s.by, seat.address)
	}
	return seat.end
}

// seatKey is the key of the seat in a connection's context.
type seatKey struct{}

// Guard makes each connection of an HTTP server take a seat. A request whose headers have come counts as a
// call. Call Guard after the handler is set and before Serve.
func (s *Seats) Guard(srv *http.Server) {
	var seats sync.Map // net.Conn -> *Seat
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		seat := s.Take(c.RemoteAddr().String())
		if seat == nil {
			CloseNow(c)
			return ctx
		}
		seats.Store(c, seat)
		seat.EndBy(func() { CloseNow(c) })
		return context.WithValue(ctx, seatKey{}, seat)
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateClosed && state != http.StateHijacked {
			return
		}
		if seat, ok := seats.LoadAndDelete(c); ok {
			seat.(*Seat).Leave()
		}
	}
	next := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seat, ok := r.Context().Value(seatKey{}).(*Seat); ok {
			seat.Called()
		}
		next.ServeHTTP(w, r)
	})
}

// CloseNow closes a connection without the goodbye of TLS, for which it would wait.
func CloseNow(c net.Conn) {
	if secured, ok := c.(*tls.Conn); ok {
		c = secured.NetConn()
	}
	_ = c.Close()
}
