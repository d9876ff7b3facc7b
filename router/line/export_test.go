package line

// Patience has the deadlines of connections.
type Patience = patience

// Run carries Ops out.
var Run = run

// Waits returns the deadlines, to be changed before Serve.
func (s *Server) Waits() *Patience { return &s.waits }

// Seats returns how many connections have a seat.
func (s *Server) Seats() int { return s.seats.Taken() }

// Goroutines returns how many connections have a goroutine.
func (s *Server) Goroutines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
