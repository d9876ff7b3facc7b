package survey

import (
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Conns are connections to nodes, each made when it is first asked for and kept for the
// next question. Safe for concurrent use; Close it in the end.
type Conns struct {
	options []grpc.DialOption

	mu   sync.Mutex // guards open
	open map[string]*grpc.ClientConn
}

// NewConns has no connection yet; options secure those that it will make.
func NewConns(options ...grpc.DialOption) *Conns {
	return &Conns{options: options, open: map[string]*grpc.ClientConn{}}
}

// To is the connection to an address.
func (c *Conns) To(addr string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn := c.open[addr]; conn != nil {
		return conn, nil
	}
	conn, err := rpc.Dial(addr, c.options...)
	if err == nil {
		c.open[addr] = conn
	}
	return conn, err
}

// Close ends all of them. The next To makes a new one.
func (c *Conns) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, conn := range c.open {
		_ = conn.Close()
		delete(c.open, addr)
	}
}

// At is To, as package setadmin asks for it.
func (c *Conns) At(addr string) (grpc.ClientConnInterface, error) { return c.To(addr) }
