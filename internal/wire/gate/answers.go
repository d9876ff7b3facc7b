package gate

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// arrivalKey is the key of the time at which the headers of a call came.
type arrivalKey struct{}

func withArrival(ctx context.Context) context.Context {
	return context.WithValue(ctx, arrivalKey{}, time.Now())
}

// arrival returns the time at which a call came. Zero means that its transport does not tell.
func arrival(ctx context.Context) time.Time {
	at, _ := ctx.Value(arrivalKey{}).(time.Time)
	return at
}

// maxDue bounds the replies of a connection that are timed at once. Replies to cancelled calls are
// never written.
const maxDue = 1 << 12

// answer is a reply on its way to the connection.
type answer struct {
	caller string
	since  time.Time
}

// answers times the replies of a connection, from the arrival of the call until the next write of
// the connection after gRPC has the reply. A reply that takes several writes counts until the first.
type answers struct {
	observe func(caller string, took time.Duration) // nil times nothing

	mu  sync.Mutex // guards due
	due []answer
}

// add times a reply that gRPC is about to get.
func (a *answers) add(one answer) {
	if a.observe == nil || one.since.IsZero() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.due) < maxDue {
		a.due = append(a.due, one)
	}
}

// take returns what the write that begins now brings to the peer.
func (a *answers) take() []answer {
	if a.observe == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	due := a.due
	a.due = nil
	return due
}

// written ends the time of these replies.
func (a *answers) written(due []answer) {
	now := time.Now()
	for _, one := range due {
		a.observe(one.caller, now.Sub(one.since))
	}
}

// callerName returns the principal of a call, else the host that it comes from.
func callerName(ctx context.Context, guard *auth.Guard) string {
	if id, _ := guard.Holder(rpc.WhoOf(ctx)); id != "" {
		return id
	}
	if t := trafficOf(ctx); t != nil {
		return rpc.Host(t.address())
	}
	return ""
}

// answer times the reply to a unary call.
func (g guard) answer(ctx context.Context, t *traffic) {
	if t != nil && t.answers.observe != nil {
		t.answers.add(answer{callerName(ctx, g.auth), arrival(ctx)})
	}
}

// messages times the messages of one stream by their ids. A message has come when its handler reads
// it. The zero value times nothing.
type messages struct {
	caller string
	mu     sync.Mutex // guards came
	came   map[uint64]time.Time
}

// comes notes a request.
func (m *messages) comes(request any) {
	r, ok := request.(*pb.StreamRequest)
	if !ok || m.came == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came[r.GetId()] = time.Now()
}

// goes returns the time of the request that a message answers in full.
func (m *messages) goes(message any) (one answer) {
	r, ok := message.(*pb.StreamReply)
	if !ok || m.came == nil || r.GetMore() {
		return answer{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	since := m.came[r.GetId()]
	delete(m.came, r.GetId())
	return answer{m.caller, since}
}
