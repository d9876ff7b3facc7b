// Package proxy is a TCP proxy that can be told, while connections run through it, to be
// slow, to hang, to break and to refuse: the faults of a network that packet filters
// cannot make.
//
// It guarantees that bytes that do pass arrive whole and in order, as TCP does, whatever
// it is told and whenever. What belongs here: one listener, one target. Which faults to
// make and when belongs to the callers.
package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Mode is what the proxy does to every connection. The zero Mode passes all at once.
type Mode struct {
	Delay  time.Duration // of every piece, each way
	Jitter time.Duration // up to so much more, drawn for each piece
	StallA bool          // nothing passes from the client to the target; connections stay
	StallB bool          // nothing passes back
	Refuse bool          // new connections are reset at once
}

// queued bounds the pieces of one direction that are under way in the proxy.
const queued = 256

// dialPatience bounds the connection to the target.
const dialPatience = 10 * time.Second

// Proxy is one listener. All methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	tasks    sync.WaitGroup

	mu      sync.Mutex // guards all below
	target  string
	mode    Mode
	changed chan struct{} // closed at each change of mode
	conns   map[net.Conn]bool
	closed  bool
}

// Listen begins on addr, host:port. Connections are reset until Target says where to.
func Listen(addr string) (*Proxy, error) {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: lis, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr is the address listened on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Target says where new connections go.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Set changes the mode, also of the connections there are.
func (p *Proxy) Set(m Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

// Break resets every connection there is. New ones are taken.
func (p *Proxy) Break() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		reset(c)
	}
}

// Close ends the listener and all connections, and waits until nothing runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Break()
	p.Set(Mode{}) // whoever waits for a change looks again
	p.tasks.Wait()
	return err
}

// reset drops what was not sent and tells the other side so.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (p *Proxy) now() (mode Mode, changed <-chan struct{}, target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.changed, p.target
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		mode, _, target := p.now()
		if mode.Refuse || target == "" || !p.keep(c) {
			reset(c)
			continue
		}
		p.tasks.Go(func() { p.serve(c, target) })
	}
}

// keep notes a connection to be ended by Break and Close; false once closed.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = true
	}
	return !p.closed
}

func (p *Proxy) drop(c net.Conn) {
	reset(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn, target string) {
	defer p.drop(client)
	server, err := net.DialTimeout("tcp", target, dialPatience)
	if err != nil {
		return
	}
	if !p.keep(server) {
		reset(server)
		return
	}
	defer p.drop(server)
	var ways sync.WaitGroup
	ways.Go(func() { p.pass(client, server, func(m Mode) bool { return m.StallA }) })
	ways.Go(func() { p.pass(server, client, func(m Mode) bool { return m.StallB }) })
	ways.Wait()
}

// piece is what one read gave, to be written when it is due.
type piece struct {
	due  time.Time
	data []byte
}

// pass copies one way. The end of what one side sends is passed on as such; anything
// else that ends it ends both sides.
func (p *Proxy) pass(from, to net.Conn, stalled func(Mode) bool) {
	pieces := make(chan piece, queued)
	gone := make(chan struct{})
	clean := false // read after the reader has ended
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case pieces <- piece{time.Now().Add(p.delay()), buffer[:n]}:
				case <-gone:
					return
				}
			}
			if err != nil {
				clean = err == io.EOF
				return
			}
		}
	})
	broken := false
	for next := range pieces {
		if !p.await(next.due, stalled) {
			broken = true
			break
		}
		if _, err := to.Write(next.data); err != nil {
			broken = true
			break
		}
	}
	close(gone)
	if broken {
		reset(from)
	}
	reader.Wait()
	if end, ok := to.(*net.TCPConn); ok && clean && !broken {
		_ = end.CloseWrite()
		return
	}
	reset(from)
	reset(to)
}

func (p *Proxy) delay() time.Duration {
	mode, _, _ := p.now()
	wait := mode.Delay
	if mode.Jitter > 0 {
		wait += rand.N(mode.Jitter)
	}
	return wait
}

// await waits until a piece may pass; false if the proxy was closed meanwhile.
func (p *Proxy) await(due time.Time, stalled func(Mode) bool) bool {
	if wait := time.Until(due); wait > 0 {
		time.Sleep(wait)
	}
	for {
		p.mu.Lock()
		mode, changed, closed := p.mode, p.changed, p.closed
		p.mu.Unlock()
		if closed || !stalled(mode) {
			return !closed
		}
		<-changed
	}
}
