package resp

import (
	"crypto/tls"
	"net"
	"strings"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Authorize makes the server check each command that takes or reads, as the gRPC method that the
// command stands for. shown reads the certificate of a TLS connection. Call Authorize before Serve.
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

// wrongPass is what Redis says of a password that does not hold, which clients know.
var wrongPass = &codedError{"WRONGPASS", "invalid username-password pair or user is disabled."}

// authenticate stores the token of AUTH or HELLO for all later commands. name is the principal's
// name. Clients that know no name send "" or "default".
func (s *session) authenticate(name, token string) error {
	if s.guard == nil {
		return errPassword
	}
	who := auth.Credentials{Token: token, Evidence: s.who.Evidence}
	id, err := s.guard.Identify(who)
	_, own, _ := strings.Cut(id, "/")
	if wrong := err != nil || name != "" && name != "default" && name != own; wrong && s.guard.Mode() == auth.Require {
		return wrongPass
	}
	s.who, s.proved = who, false // looked at again
	return nil
}

// authCommand is AUTH token and AUTH name token.
func authCommand(s *session, args []string) op {
	name := ""
	if len(args) == 2 {
		name = args[0]
	}
	if err := s.authenticate(name, args[len(args)-1]); err != nil {
		return failed(err)
	}
	return ok()
}

// authorized is the op, or the error that it meets instead.
func (s *session) authorized(o op) op {
	method, demand := "", auth.Demand{Verb: auth.Take, Keys: 1}
	switch o.kind {
	case local:
		return o
	case takeSeq, takeOnce:
		method, demand.Kind, demand.Name = pb.Sequence_Next_FullMethodName, auth.Space, auth.SpaceName(o.key.Space)
	case takeTag:
		method, demand.Kind, demand.Name = pb.Segment_Take_FullMethodName, auth.Tag, o.name
	case takeID:
		method, demand.Kind, demand.Name = pb.Snowflake_Generate_FullMethodName, auth.Namespace, auth.NamespaceName(o.name)
	case lookup:
		method = pb.Sequence_Lookup_FullMethodName
		demand = auth.Demand{Kind: auth.Space, Name: auth.SpaceName(o.key.Space), Verb: auth.Read, Keys: 1}
	case readSeq:
		method = pb.Sequence_Current_FullMethodName
	}
	demands := []auth.Demand{demand}
	if o.kind == readSeq {
		demands = demands[:0]
		for _, key := range o.keys {
			demands = append(demands, auth.Demand{Kind: auth.Space, Name: auth.SpaceName(key.Space), Verb: auth.Read, Keys: 1})
		}
	}
	if err := s.guard.Ask(s.who, method, demands...); err != nil {
		return op{err: err, tally: o.tally}
	}
	return o
}
