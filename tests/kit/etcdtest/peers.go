package etcdtest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// peers is the network between the members of one cluster: each is reached by a proxy of HTTP, which
// knows the sender by a header that members give. So single members can be cut off, which a
// proxy of TCP cannot do: all come from one address.
type peers struct {
	mu      sync.Mutex // guards all below
	ids     []uint64   // of the members; if empty, they are unknown, and nothing is cut
	cut     []uint64
	changed chan struct{} // closed at each change
}

// Cut stops all traffic between these members and the others, without an error to either side, until the
// next call. Use it only for clusters of StartApart.
func (c *Cluster) Cut(off ...*Member) {
	c.t.Helper()
	var ids, cut []uint64
	for i, m := range c.status() {
		if m.ID == 0 {
			c.t.Fatalf("id of %s: %v", m.Addr, m.Err)
		}
		ids = append(ids, m.ID)
		if slices.Contains(off, c.Members[i]) {
			cut = append(cut, m.ID)
		}
	}
	c.peers.set(ids, cut)
}

func (p *peers) set(ids, cut []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids, p.cut = ids, cut
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until a message from a member may pass to another one.
func (p *peers) await(ctx context.Context, from uint64, to int) error {
	for {
		p.mu.Lock()
		blocked := len(p.ids) > 0 && slices.Contains(p.cut, from) != slices.Contains(p.cut, p.ids[to])
		changed := p.changed
		p.mu.Unlock()
		if !blocked {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// listen is the way to one member from the others, at an address; target is where it listens.
func (p *peers) listen(t *testing.T, to int, addr, target string) {
	t.Helper()
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: target}) },
		Transport:     &http.Transport{DisableCompression: true},
		FlushInterval: -1, // messages come in answers that do not end
		ErrorLog:      log.New(io.Discard, "", 0),
		ModifyResponse: func(r *http.Response) error {
			r.Body = &gated{ReadCloser: r.Body, wait: func() error { return p.await(r.Request.Context(), sender(r.Request), to) }}
			return nil
		},
	}
	server := &http.Server{ErrorLog: pass.ErrorLog, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.await(r.Context(), sender(r), to) == nil {
			pass.ServeHTTP(w, r)
		}
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(lis) })
	t.Cleanup(func() {
		p.set(nil, nil) // those that wait go on, and find their connections closed
		_ = server.Close()
		serving.Wait()
	})
}

// sender is the member that a request is of; 0 where it does not say, as when versions are asked.
func sender(r *http.Request) uint64 {
	id, _ := strconv.ParseUint(r.Header.Get("X-Server-From"), 16, 64)
	return id
}

// gated is a body of which what was read waits until it may pass.
type gated struct {
	io.ReadCloser
	wait func() error
}

func (g *gated) Read(b []byte) (int, error) {
	n, err := g.ReadCloser.Read(b)
	if stopped := g.wait(); stopped != nil {
		return 0, stopped
	}
	return n, err
}
