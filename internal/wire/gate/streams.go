package gate

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc/tap"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// maxOpen bounds the open calls of a server's callers without a certificate, and separately of callers with
// one. Each call takes a goroutine and some KiB, even before its message has come. Nodes with certificates
// have no bound.
const maxOpen = 1 << 14

// openCalls bounds the calls that a server has open on all connections of one kind, as a bound of one
// connection does not: a peer may have many of them. Above half of the limit no connection has more than
// its share. The calls by which a cluster lives have maxAside places more.
type openCalls struct {
	limit   int64
	all     atomic.Int64
	sharers atomic.Int64 // connections with open calls
	full    error
}

func newOpenCalls(limit int) *openCalls {
	limit = cmp.Or(limit, maxOpen)
	return &openCalls{limit: int64(limit), full: fmt.Errorf("%w: more than half of the %d calls that a server may have open are, and this connection has its share", seq.ErrOverloaded, limit)}
}

// refuses reports whether a call that is counted already goes too far: own is how many its connection has.
func (o *openCalls) refuses(own int64, aside bool) bool {
	limit := o.limit
	if aside {
		limit += maxAside
	}
	all := o.all.Load()
	return all > limit || own > 1 && !below(all, own, limit, max(1, o.sharers.Load()))
}

// opens counts a call. Needs w.mu.
func (w *watched) opens(stream uint32) {
	if w.open == nil { // closed
		return
	}
	if len(w.open) == 0 {
		w.calls.sharers.Add(1)
	}
	w.open[stream] = struct{}{}
	w.calls.all.Add(1)
}

// ends no longer counts a call, if it was counted. Needs w.mu.
func (w *watched) ends(stream uint32) {
	if _, open := w.open[stream]; !open {
		return
	}
	delete(w.open, stream)
	w.calls.all.Add(-1)
	if len(w.open) == 0 {
		w.calls.sharers.Add(-1)
	}
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.mu.Lock()
	for stream := range w.open {
		w.ends(stream)
	}
	w.open = nil
	w.mu.Unlock()
	return w.Conn.Close()
}

// openKind is the account of a connection's calls.
func (c *cancels) openKind(who any) *openCalls {
	if _, proven := who.(auth.Identity); proven {
		return c.proven
	}
	return c.strange
}

// admitOpen refuses a call before it has a goroutine. It counts as a cancelled one, because gRPC keeps its
// headers until the connection ends.
func admitOpen(ctx context.Context, info *tap.Info) error {
	t := trafficOf(ctx)
	if t == nil || t.wire == nil {
		return nil
	}
	w := t.wire
	w.mu.Lock()
	own := int64(len(w.open))
	w.mu.Unlock()
	if !w.calls.refuses(own, (controlAdmission{}).has(info.FullMethodName)) {
		return nil
	}
	w.by.refused.Note(rpc.RefusedOverloaded, w.RemoteAddr().String())
	w.cancelled(1)
	return rpc.ToStatus(w.calls.full)
}
