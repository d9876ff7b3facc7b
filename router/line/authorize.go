package line

import (
	"crypto/tls"
	"net"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Authorize makes the server check each request that takes or reads, as the gRPC method that the
// request stands for. shown reads the certificate of a TLS connection. Call Authorize before Serve.
// A nil guard allows everything.
func (s *Server) Authorize(guard *auth.Guard, shown func(*tls.ConnectionState) auth.Evidence) {
	s.guard, s.shown = guard, shown
}

// CountRefused makes the server count in r the connections and calls that it refuses. Call it before Serve.
func (s *Server) CountRefused(r *rpc.Refused) {
	s.refused, s.seats = r, gate.NewSeats(int(s.stats.maxConns.Load()), r)
}

// Share makes the buffers of all connections draw on b. Call it before Serve.
func (s *Server) Share(b *gate.Budget) { s.budget = b }

// look reads what a connection showed, after its handshake.
func (s *Server) look(c net.Conn) auth.Evidence {
	secured, ok := c.(*tls.Conn)
	if !ok || s.guard == nil {
		return auth.Evidence{}
	}
	state := secured.ConnectionState()
	return s.shown(&state)
}

// Authorize checks that the caller may do what o wants. If not, o has the error instead.
func (c *Conn) Authorize(o *Op) {
	if c.guard == nil || o.Kind == Local {
		return
	}
	method, demand := "", auth.Demand{Verb: auth.Take, Keys: 1}
	switch o.Kind {
	case Take, TakeOnce:
		method, demand.Kind, demand.Name = pb.Sequence_Next_FullMethodName, auth.Space, auth.SpaceName(o.Key.Space)
	case TakeTag:
		method, demand.Kind, demand.Name = pb.Segment_Take_FullMethodName, auth.Tag, o.Name
	case TakeID:
		method, demand.Kind, demand.Name = pb.Snowflake_Generate_FullMethodName, auth.Namespace, auth.NamespaceName(o.Name)
	case Lookup:
		method = pb.Sequence_Lookup_FullMethodName
		demand = auth.Demand{Kind: auth.Space, Name: auth.SpaceName(o.Key.Space), Verb: auth.Read, Keys: 1}
	case Open:
		method, demand.Kind, demand.Name = pb.Sequence_Open_FullMethodName, auth.Space, auth.SpaceName(o.Key.Space)
	case Done:
		method, demand.Kind, demand.Name = pb.Sequence_Done_FullMethodName, auth.Space, auth.SpaceName(o.Key.Space)
		demand.Keys = 0 // Open was charged
	case Raise:
		method = pb.Sequence_Raise_FullMethodName
		demand = auth.Demand{Kind: auth.Space, Name: auth.SpaceName(o.Key.Space), Verb: auth.Raise, Keys: 1, Within: &o.Once.MaxJump}
	case Read:
		method = pb.Sequence_Current_FullMethodName
	case Wait:
		method = pb.Sequence_Watch_FullMethodName
		demand = auth.Demand{Kind: auth.Space, Name: auth.SpaceName(o.Key.Space), Verb: auth.Read, Keys: 1}
	case Mark:
		method = pb.Sequence_Mark_FullMethodName
	}
	demands := []auth.Demand{demand}
	if o.Kind == Read || o.Kind == Mark {
		demands = demands[:0]
		for _, key := range o.Keys {
			demands = append(demands, auth.Demand{Kind: auth.Space, Name: auth.SpaceName(key.Space), Verb: auth.Read, Keys: 1})
		}
	}
	if err := c.guard.Ask(c.who, method, demands...); err != nil {
		*o = Op{Err: err, Tally: o.Tally}
	}
}
