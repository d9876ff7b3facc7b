package storeclient_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// grown is the mapping with a space added.
func grown(t *testing.T, m seq.Mapping, s seq.Space) seq.Mapping {
	t.Helper()
	next, _, err := m.Add(s)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// spacesAt returns the number of spaces of each store.
func spacesAt(t *testing.T, c storeclient.Cluster) (n []int) {
	t.Helper()
	for _, s := range c.Stores {
		id, err := s.Client.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, len(id.Mapping.Spaces))
	}
	return n
}

func TestWhoeverConnectsTellsStoresOfSpacesThatTheyMissed(t *testing.T) {
	s := three(t)
	c := mustConnect(t, addrs(s...)...)
	m := grown(t, c.Identity.Mapping, seq.Space{Name: "room", Sections: 3})
	if _, err := c.Stores[1].Client.Extend(t.Context(), "c1", 0, m); err != nil {
		t.Fatal(err)
	}
	later := mustConnect(t, addrs(s...)...)
	if !later.Identity.Mapping.Extends(m) {
		t.Errorf("got the mapping %+v", later.Identity.Mapping)
	}
	for i, n := range spacesAt(t, later) {
		if n != 2 {
			t.Errorf("store %d has %d spaces", i, n)
		}
	}
}

func TestStoresWithDifferentAddedSpacesDoNotBelongTogether(t *testing.T) {
	for _, odd := range [][2]int{{0, 1}, {1, 2}} { // the first that answers has neither, or one of them
		s := three(t)
		c := mustConnect(t, addrs(s...)...)
		for i, name := range []string{"room", "pts"} {
			m := grown(t, c.Identity.Mapping, seq.Space{Name: name, Sections: 3})
			if _, err := c.Stores[odd[i]].Client.Extend(t.Context(), "c1", 0, m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := connect(t, patience, addrs(s...)...); !errors.Is(err, seq.ErrBadMapping) || !strings.Contains(err.Error(), "store ") {
			t.Errorf("%v: got %v, want ErrBadMapping", odd, err)
		}
	}
}

// One store hears of a space, while another is away: a follower goes over to it once it may,
// and tells the others, also the one that comes back.
func TestAFollowerHearsOfSpacesAndTellsTheOtherStores(t *testing.T) {
	s := three(t)
	cluster := mustConnect(t, addrs(s...)...)
	s[2].stop()
	f := storeclient.NewFollower(cluster, slog.New(slog.DiscardHandler), func(quorum.MemberList, []quorum.NamedStore) error { return nil }, grpc.WithContextDialer(dialPlace))
	heard := make(chan seq.Mapping, 10)
	failed := false
	f.OnSpaces(func(_ context.Context, m seq.Mapping) error {
		if !failed {
			failed = true
			f.Kick()
			return seq.ErrNoQuorum
		}
		heard <- m
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	wg.Go(func() { _ = f.Run(ctx) })
	m := grown(t, cluster.Identity.Mapping, seq.Space{Name: "room", Sections: 3})
	if _, err := cluster.Stores[0].Client.Extend(t.Context(), "c1", 0, m); err != nil {
		t.Fatal(err)
	}
	f.Kick()
	if got := <-heard; !got.Extends(m) {
		t.Errorf("heard of %+v", got)
	}
	s[2].start()
	for ctx, done := context.WithTimeout(t.Context(), patience); ; f.Kick() {
		defer done()
		id, err := cluster.Stores[2].Client.Describe(ctx)
		if err == nil && len(id.Mapping.Spaces) == 2 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the store that came back has %+v, %v", id.Mapping, err)
		}
	}
	if len(heard) > 0 {
		t.Error("told again of what it had taken over")
	}
}

func TestSpacesAreToldUntilEnoughStoresHaveThem(t *testing.T) {
	s := three(t)
	cluster := mustConnect(t, addrs(s...)...)
	f := storeclient.NewFollower(cluster, slog.New(slog.DiscardHandler), nil, grpc.WithContextDialer(dialPlace))
	m := grown(t, cluster.Identity.Mapping, seq.Space{Name: "room", Sections: 3})
	s[0].stop()
	s[1].stop()
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	if err := f.Extend(ctx, m); !errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(err.Error(), s[0].addr) {
		t.Errorf("one of three: got %v", err)
	}
	s[1].start()
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f.Extend(ctx, m); err != nil {
		t.Errorf("two of three: got %v", err)
	}
}
