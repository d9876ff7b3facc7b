package clienttest

import (
	"net"
	"sync"
)

// doorway is a listener fed by hand, whose Close leaves the address bound.
type doorway struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (g *doorway) Accept() (net.Conn, error) {
	select {
	case conn := <-g.conns:
		return conn, nil
	case <-g.done:
		return nil, net.ErrClosed
	}
}

func (g *doorway) Close() error {
	g.once.Do(func() { close(g.done) })
	return nil
}

// offer is false when the server behind it has stopped.
func (g *doorway) offer(conn net.Conn) bool {
	select {
	case g.conns <- conn:
		return true
	case <-g.done:
		return false
	}
}

func (g *doorway) Addr() net.Addr { return g.addr }
