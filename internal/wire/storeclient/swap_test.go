package storeclient_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// follow runs a follower of the cluster until the test ends.
func follow(t *testing.T, c storeclient.Cluster, log *slog.Logger) *storeclient.Follower {
	t.Helper()
	f := storeclient.NewFollower(c, log, func(quorum.MemberList, []quorum.NamedStore) error { return nil }, grpc.WithContextDialer(dialPlace))
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	ran.Go(func() { _ = f.Run(ctx) })
	t.Cleanup(func() { cancel(); ran.Wait() })
	return f
}

// eventually waits until the condition holds, and has the follower look meanwhile.
func eventually(t *testing.T, f *storeclient.Follower, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		f.Kick()
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// exchange has two stores change their addresses.
func exchange(a, b *store) {
	a.stop()
	b.stop()
	a.addr, b.addr = b.addr, a.addr
	a.start()
	b.start()
}

func TestStoresThatExchangeTheirAddressesAreFound(t *testing.T) {
	s := three(t)
	c := mustConnect(t, addrs(s...)...)
	text := &textlog.Log{}
	f := follow(t, c, slog.New(slog.NewTextHandler(text, nil)))
	exchange(s[0], s[1])
	for i, client := range []*storeclient.Client{c.Stores[0].Client, c.Stores[1].Client, c.Stores[2].Client} {
		eventually(t, f, "its store answers the client", func() bool {
			_, err := client.Describe(t.Context())
			return err == nil
		})
		if want := s[i].addr; client.Addr() != want {
			t.Errorf("the client of store %d is at %s, expected %s", i, client.Addr(), want)
		}
	}
	if !strings.Contains(text.String(), "another address") {
		t.Errorf("the log does not tell it: %s", text)
	}
	// A process that starts now goes by the same addresses.
	again := mustConnect(t, s[1].addr, s[0].addr, s[2].addr)
	if len(again.Odd) > 0 || len(again.Stores) != 3 {
		t.Errorf("connected to %+v", again)
	}
}

func TestAStoreAtTheAddressOfAnotherIsLeftOutWhileAProcessLives(t *testing.T) {
	s, others := three(t), three(t)
	c := mustConnect(t, addrs(s...)...)
	mustConnect(t, addrs(others...)...)
	text := &textlog.Log{}
	f := follow(t, c, slog.New(slog.NewTextHandler(text, nil)))
	s[2].stop()
	place, _ := places.Load(others[2].addr)
	places.Store(s[2].addr, place)
	eventually(t, f, "the log names it", func() bool { return strings.Contains(text.String(), "left out") })
	if _, err := c.Stores[2].Client.Describe(t.Context()); !errors.Is(err, seq.ErrStaleEra) {
		t.Errorf("the client of the store that is away got %v, expected %v", err, seq.ErrStaleEra)
	}
	s[2].start()
	eventually(t, f, "the store is back", func() bool {
		_, err := c.Stores[2].Client.Describe(t.Context())
		return err == nil
	})
}

func TestAStoreThatWasAwayWhenItsListGotCompleteHearsOfIt(t *testing.T) {
	s := three(t)
	var clients []*storeclient.Client
	var members []quorum.Member
	for _, store := range s {
		client, err := storeclient.Dial(store.addr, grpc.WithContextDialer(dialPlace))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		id, err := client.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		clients, members = append(clients, client), append(members, quorum.Member{UUID: id.UUID, Name: id.Name})
	}
	if id, err := clients[0].Bind(t.Context(), storeclient.Binding{Cluster: "c1", Members: members, Complete: true}); !errors.Is(err, seq.ErrNotVoting) {
		t.Fatalf("complete before it was bound: %+v, %v, expected %v", id, err, seq.ErrNotVoting)
	}
	for step, complete := range []bool{false, true} {
		for i, client := range clients[:3-step] {
			id, err := client.Bind(t.Context(), storeclient.Binding{Cluster: "c1", Members: members, Complete: complete})
			if err != nil || id.Pending == complete {
				t.Fatalf("store %d, complete %v: %+v, %v", i, complete, id, err)
			}
		}
	}
	id, err := clients[2].Describe(t.Context())
	if err != nil || id.Voting || !strings.Contains(id.State, "waiting") {
		t.Fatalf("a pending store is %+v, %v", id, err)
	}
	s[2].stop()
	f := follow(t, mustConnect(t, addrs(s...)...), slog.New(slog.DiscardHandler))
	s[2].start()
	eventually(t, f, "it votes", func() bool {
		id, err := clients[2].Describe(t.Context())
		return err == nil && !id.Pending && slices.Contains([]string{"voting", "comparing its disk with what its fellow stores remember of it"}, id.State)
	})
}

func TestAConnectingProcessGoesByNeitherOfTwoProcessesOfOneStore(t *testing.T) {
	s := three(t)
	mustConnect(t, addrs(s...)...)
	s[2].stop()
	clone := &store{t: t, dir: t.TempDir(), addr: "clone-of-" + s[2].addr}
	if err := os.CopyFS(clone.dir, os.DirFS(s[2].dir)); err != nil {
		t.Fatal(err)
	}
	clone.start()
	s[2].start()
	c := mustConnect(t, s[0].addr, s[1].addr, s[2].addr, clone.addr)
	if len(c.Odd) != 2 || !errors.Is(c.Odd[0].Err, seq.ErrNotVoting) || !strings.Contains(c.Odd[0].Err.Error(), clone.addr) || !strings.Contains(c.Odd[1].Err.Error(), s[2].addr) {
		t.Errorf("odd %+v, expected both processes, each with the address of the other", c.Odd)
	}
	if _, err := connect(t, patience, s[0].addr, s[2].addr, clone.addr); !errors.Is(err, seq.ErrNotVoting) || !strings.Contains(err.Error(), clone.addr) {
		t.Errorf("one store and two processes of another: %v, expected %v", err, seq.ErrNotVoting)
	}
}
