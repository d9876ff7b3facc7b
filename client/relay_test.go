package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// routerTo runs a router until the test ends, and waits until it serves.
func routerTo(t *testing.T, addrs ...string) string {
	t.Helper()
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", Allocs: addrs, Timeout: 4 * patience, AttemptTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = r.Close()
	})
	waitFor(t, "the router to be ready", func() bool { return r.Ready() == nil })
	return r.Addr()
}

// road is the network of one client. It counts the keys that are under way to an address on
// streams, and can be cut to some addresses.
type road struct {
	to string // whose keys are counted

	mu          sync.Mutex // guards all below
	sent, under int        // keys
	most        int        // under way at once
	cut         map[string]bool
	conns       map[net.Conn]string
}

func newRoad(to string) *road {
	return &road{to: to, cut: map[string]bool{}, conns: map[net.Conn]string{}}
}

func (r *road) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			if r.isCut(addr) {
				return nil, errors.New("no way there")
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err == nil {
				r.mu.Lock()
				r.conns[conn] = addr
				r.mu.Unlock()
			}
			return conn, err
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, cc, method, opts...)
			if err != nil || cc.Target() != "passthrough:///"+r.to {
				return s, err
			}
			return &counted{ClientStream: s, road: r, keys: map[uint64]int{}}, nil
		}),
	}
}

func (r *road) isCut(addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut[addr]
}

// close cuts the way to some addresses.
func (r *road) close(addrs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, addr := range addrs {
		r.cut[addr] = true
	}
	for conn, addr := range r.conns {
		if r.cut[addr] {
			_ = conn.Close()
		}
	}
}

func (r *road) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under += n
	r.sent += max(n, 0)
	r.most = max(r.most, r.under)
}

// counted is a stream whose keys are counted until they are answered.
type counted struct {
	grpc.ClientStream

	road *road
	mu   sync.Mutex     // guards keys
	keys map[uint64]int // by the id of the message
}

func (s *counted) SendMsg(m any) error {
	n := 0
	for _, b := range m.(*pb.StreamRequest).GetNext().GetBatches() {
		n += len(b.GetUids())
	}
	s.mu.Lock()
	s.keys[m.(*pb.StreamRequest).GetId()] = n
	s.mu.Unlock()
	s.road.add(n)
	return s.ClientStream.SendMsg(m)
}

func (s *counted) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if r := m.(*pb.StreamReply); err == nil && !r.GetMore() {
		s.mu.Lock()
		s.road.add(-s.keys[r.GetId()])
		delete(s.keys, r.GetId())
		s.mu.Unlock()
	}
	return err
}

// A router would ask the nodes of a dead Set again, for each of many callers that have the Set's
// table: one at a time goes there to see.
func TestCallersOfADeadSetDoNotFallBackOnARouterTogether(t *testing.T) {
	for dead := range 2 {
		s := twoSets(t, 3)
		all := append(s.All[0].Addrs(), s.All[1].Addrs()...)
		to := newRoad(routerTo(t, all...))
		c := dial(t, s.All[0], client.Config{Addrs: append([]string{to.to}, all...), Timeout: 4 * patience, AttemptTimeout: 4 * patience, DialOptions: to.options()})
		waitFor(t, "both tables", knows(c, 2))
		s.All[dead].Kill()
		begun, ctx := time.Now(), bounded(t)
		var wg sync.WaitGroup
		const callers = 50
		for range callers {
			wg.Go(func() { // to the end of the rounds, when the Set counts as away
				if _, err := c.Next(ctx, client.Key{UID: uidIn(s, seq.SectionID(dead))}); !errors.Is(err, seq.ErrNoQuorum) {
					t.Errorf("a number of a dead Set: %v", err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		retries, took := c.Stats().Retries, time.Since(begun)
		to.mu.Lock()
		sent, most := to.sent, to.most
		to.mu.Unlock()
		if sent == 0 || most > 1 {
			t.Errorf("Set %d is dead: %d keys went to the router, %d at once, want some, one at a time", dead, sent, most)
		}
		// Four are probed: three nodes, and the addresses of Config. Nodes are asked by all callers until they are found dead.
		if most := 4*(took/(20*time.Millisecond)+1) + 4*callers; retries > uint64(most) {
			t.Errorf("Set %d is dead: %d callers made %d attempts in %v, want at most %d", dead, callers, retries, took, most)
		}
		for _, n := range s.All[dead].Nodes {
			n.Restart()
		}
		waitFor(t, "the Set to be back", func() bool {
			_, err := c.Next(ctx, client.Key{UID: uidIn(s, seq.SectionID(dead))})
			return err == nil
		})
		_ = c.Close()
	}
}

// The nodes of a Set answer the router, and not the client, from its start or later.
func TestARouterIsTheWayToASetWhoseNodesCannotBeReached(t *testing.T) {
	for _, row := range []struct {
		away  int
		first bool // before the client has any table
	}{{0, false}, {1, false}, {0, true}, {1, true}} {
		s := twoSets(t, 2)
		all := append(s.All[0].Addrs(), s.All[1].Addrs()...)
		to := newRoad(routerTo(t, all...))
		if row.first {
			to.close(s.All[row.away].Addrs()...)
		}
		c := dial(t, s.All[0], client.Config{Addrs: append(all, to.to), Timeout: 4 * patience, AttemptTimeout: patience, DialOptions: to.options()})
		if !row.first {
			waitFor(t, "both tables", knows(c, 2))
			to.close(s.All[row.away].Addrs()...)
		}
		reach := func(when string) {
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, seq.SectionID(row.away))}); err != nil {
						t.Errorf("%+v: %s: %v", row, when, err)
					}
				})
			}
			wg.Wait()
		}
		waitFor(t, "the router to be found", func() bool {
			_, err := c.Next(bounded(t), client.Key{UID: uidIn(s, seq.SectionID(row.away))})
			return err == nil
		})
		reach("at first")
		waitFor(t, "the Set to count as away", func() bool {
			return c.Caller().Probe(bounded(t)) == nil && c.Sets().All[row.away].Away != nil
		})
		reach("once it counts as away")
		_ = c.Close()
	}
}

func TestARouterIsTheWayToAClusterWhoseNodesCannotBeReached(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	to := newRoad(routerTo(t, cluster.Addrs()...))
	c := dial(t, cluster, client.Config{Addrs: append(cluster.Addrs(), to.to), Timeout: 4 * patience, AttemptTimeout: patience, DialOptions: to.options()})
	to.close(cluster.Addrs()...)
	for uid := range seq.UID(6) {
		if _, err := c.Next(bounded(t), client.Key{UID: uid * 64}); err != nil {
			t.Errorf("uid %d: %v", uid*64, err)
		}
	}
}
