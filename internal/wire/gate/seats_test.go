package gate

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// sit takes seats for connections of an address, and notes those that were closed.
func sit(t *testing.T, s *Seats, address string, n int, closed map[*Seat]bool) (all []*Seat) {
	t.Helper()
	for range n {
		seat := s.Take(address)
		if seat == nil {
			t.Fatalf("no seat for %s beside %d", address, s.Taken())
		}
		seat.EndBy(func() { closed[seat] = true })
		all = append(all, seat)
	}
	return all
}

func TestConnectionsThatNeverCallMakeRoom(t *testing.T) {
	s := silentSeats(3, nil)
	var all []*traffic
	for i := range 6 {
		conn := drawing(t, newAccount(piece, piece))
		conn.seat = s.Take("10.0.0.1:1")
		conn.seat.EndBy(func() { _ = conn.Close() })
		if all = append(all, conn); i == 0 {
			conn.met()
		}
	}
	for i, conn := range all {
		if want := i == 1 || i == 2; conn.closed.Load() != want {
			t.Errorf("connection %d is closed: %v, want %v", i, !want, want)
		}
	}
	for _, conn := range all {
		_ = conn.Close()
	}
	if got := s.Taken(); got != 0 {
		t.Errorf("%d seats are taken after the end, want none", got)
	}
}

func TestAConnectionWithoutACallYieldsItsSeat(t *testing.T) {
	refused := rpc.NewRefused(nil)
	s, closed := NewSeats(4, refused), map[*Seat]bool{}
	old := sit(t, s, "10.0.0.1:1", 4, closed)
	old[0].Called()
	old[2].Called()
	sit(t, s, "10.0.0.1:2", 1, closed)[0].Called()
	if !closed[old[1]] || len(closed) != 1 {
		t.Errorf("closed %d, want the oldest without a call", len(closed))
	}
	sit(t, s, "10.0.0.1:3", 1, closed)[0].Called()
	if !closed[old[3]] || len(closed) != 2 {
		t.Errorf("closed %d, want the other one without a call", len(closed))
	}
	if s.Take("10.0.0.1:4") != nil {
		t.Error("an address that has all seats got another one, though all have had calls")
	}
	other := sit(t, s, "10.0.0.2:1", 2, closed)
	if len(closed) != 4 || !closed[old[0]] || !closed[other[0]] {
		t.Errorf("closed %d: want one of the address with all seats, and then the first of those without a call", len(closed))
	}
	old[1].Leave()
	other[1].Leave()
	other[1].Leave()
	if got := s.Taken(); got != 3 {
		t.Errorf("%d seats are taken, want 3", got)
	}
	for _, one := range refused.Totals() {
		if one.Reason != rpc.RefusedConnections {
			t.Errorf("counted %v", one)
		}
	}
	if got := refused.Totals(); len(got) != 2 || got[0].Address != "10.0.0.1" || got[0].Count != 4 || got[1].Count != 1 {
		t.Errorf("counted %v", got)
	}
}

func TestAnAddressWithFewSeatsYieldsNone(t *testing.T) {
	s, closed := NewSeats(4, nil), map[*Seat]bool{}
	for _, seat := range append(sit(t, s, "10.0.0.1:1", 2, closed), sit(t, s, "10.0.0.2:1", 2, closed)...) {
		seat.Called()
	}
	if s.Take("10.0.0.3:1") != nil || len(closed) != 0 {
		t.Errorf("closed %d connections of addresses with half of the seats", len(closed))
	}
}

func TestIdleConnectionsDoNotKeepHTTPCallersAway(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSeats(8, nil)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
	s.Guard(srv)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(lis) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	dial := func() net.Conn {
		c, err := net.Dial("tcp", lis.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		return c
	}
	call := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		reply, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			err = reply.Body.Close()
		}
		return err
	}
	polite := dial()
	if err := call(polite); err != nil {
		t.Fatal(err)
	}
	idle := make([]net.Conn, 40)
	for i := range idle {
		idle[i] = dial()
		_, _ = io.WriteString(idle[i], "GET / HT") // half a request is no call
	}
	if err := call(polite); err != nil {
		t.Errorf("a connection that had a call: %v", err)
	}
	if err := call(dial()); err != nil {
		t.Errorf("a new caller: %v", err)
	}
	for _, c := range idle[:30] {
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Fatal("an old connection without a call was answered")
		}
	}
	_ = srv.Close()
	for deadline := time.Now().Add(20 * time.Second); s.Taken() > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d seats are taken after the end", s.Taken())
		}
		<-time.After(time.Millisecond)
	}
}
