package gate

import (
	"sync"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// maxNewcomers bounds a server's connections that have had no call yet.
const maxNewcomers = 1024

// newcomers are connections that have had no call yet. If one too many comes, the oldest is closed,
// so that connections that do nothing take no places. Safe for concurrent use.
type newcomers struct {
	mu   sync.Mutex // guards all below
	line []*traffic // the oldest first, and some that have called or closed since
	live map[*traffic]bool
}

// add takes a connection in.
func (n *newcomers) add(t *traffic) {
	n.mu.Lock()
	n.line = append(n.line, t)
	n.live[t] = true
	var oldest *traffic
	for len(n.live) > maxNewcomers || len(n.line) > 2*maxNewcomers {
		first := n.line[0]
		n.line = n.line[1:]
		if !n.live[first] {
			continue
		}
		if len(n.live) > maxNewcomers {
			oldest = first
			delete(n.live, first)
			break
		}
		n.line = append(n.line, first)
	}
	n.mu.Unlock()
	if oldest != nil {
		oldest.drop(rpc.RefusedConnections)
	}
}

// leave removes a connection that has had a call, or is closed.
func (n *newcomers) leave(t *traffic) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, t)
}
