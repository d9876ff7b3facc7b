package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNodesMeetAndSeeEachOthersMetadata(t *testing.T) {
	store := start(t, "s1", func(c *Config) {
		c.Meta = Meta{Role: RoleStore, Addr: "10.0.0.1:7000", HTTP: "10.0.0.1:8000", Admin: "10.0.0.1:9000", Session: 77, Protocol: 3, TableVersion: 4}
	})
	alloc := start(t, "a1", seed(store))
	router := start(t, "r1", seed(store), func(c *Config) { c.Meta.Role = RoleRouter })
	meet(t, store, alloc, router)
	got, err := find(router, "s1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Self(), got.Meta); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Gossip, store.Addr(); got != want {
		t.Errorf("got gossip address %s, want %s", got, want)
	}
	if alloc.Self().Session == 0 || alloc.Self().Session == router.Self().Session {
		t.Error("sessions were not drawn at random")
	}
	if self, err := find(router, "r1"); err != nil || !self.Self {
		t.Errorf("got %+v, %v, want the node itself marked", self, err)
	}
}

func TestTableVersionsSpread(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", seed(a))
	c := start(t, "c", seed(a))
	meet(t, a, b, c)
	a.SetTableVersion(42)
	a.SetTableVersion(41)
	for _, v := range []*View{a, b, c} {
		wait(t, func() error {
			if got := v.HighestTableVersion(); got != 42 {
				return fmt.Errorf("%s: got table version %d, want 42", v.Self().Name, got)
			}
			return nil
		})
	}
}

func TestAHardStopIsSeenAsDeadAndStaysListed(t *testing.T) {
	log := &journal{}
	a := start(t, "a", fast, logging(log))
	b := start(t, "b", fast, seed(a))
	c := start(t, "c", fast, seed(a))
	meet(t, a, b, c)
	before := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*View{a, b} {
		if m := sees(t, v, "c", StateDead); m.Since.Before(before) {
			t.Errorf("got dead since %v, want after %v", m.Since, before)
		}
	}
	log.await(t, `msg="member died"`, "member=c")
}

func TestALeaveIsSeenAsLeft(t *testing.T) {
	log := &journal{}
	a := start(t, "a", logging(log))
	b := start(t, "b", seed(a))
	c := start(t, "c", seed(a))
	meet(t, a, b, c)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := c.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	sees(t, a, "c", StateLeft)
	sees(t, b, "c", StateLeft)
	log.await(t, `msg="member left"`, "member=c")
	sees(t, c, "c", StateLeft)

	wantErr(t, c.Leave(ctx), ErrClosed)
}

func TestALateComerLearnsFromTheExchangeWhoLeft(t *testing.T) {
	a := start(t, "a")
	a.mu.Lock()
	a.roster.notice(departure{"gone", 5}, time.Now())
	a.mu.Unlock()
	b := start(t, "b", seed(a))
	wait(t, func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.roster.departed[departure{"gone", 5}]; !ok {
			return errors.New("b did not learn of the departure")
		}
		return nil
	})
}

func TestALoneNodeLeavesAtOnce(t *testing.T) {
	v := start(t, "a")
	if err := v.Leave(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTwoNodesOfOneNameAreReportedAndTheSecondTakesOverWhenTheFirstDies(t *testing.T) {
	atOther, atSecond := &journal{}, &journal{}
	first := start(t, "twin", fast)
	other := start(t, "other", fast, seed(first), logging(atOther))
	meet(t, first, other)
	second := start(t, "twin", fast, seed(other), logging(atSecond))
	for _, log := range []*journal{atOther, atSecond} {
		log.await(t, `msg="member name conflict"`, "twin", "two members use one name")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wait(t, func() error {
		m, err := find(other, "twin")
		if err == nil && (m.State != StateAlive || m.Meta.Session != second.Self().Session) {
			err = fmt.Errorf("got %+v, want the second twin alive", m)
		}
		return err
	})
}

func TestNodesOfTwoClustersNeverMix(t *testing.T) {
	ours := start(t, "a")
	theirs := start(t, "b", func(c *Config) { c.ClusterID = "foreign"; c.Join = []string{ours.Addr()} })
	for _, j := range []struct{ from, to *View }{{theirs, ours}, {ours, theirs}} {
		if n, err := j.from.tryJoin([]string{j.to.Addr()}); n != 0 || err == nil {
			t.Errorf("%d nodes of another cluster were joined, %v", n, err)
		}
	}
	friend := start(t, "c", seed(ours))
	meet(t, ours, friend)
	ours.SetTableVersion(9)
	wait(t, func() error {
		if got := friend.HighestTableVersion(); got != 9 {
			return fmt.Errorf("got table version %d, want 9", got)
		}
		return nil
	})
	if got := theirs.Members(); len(got) != 1 || theirs.HighestTableVersion() != 0 {
		t.Errorf("the foreign node lists %+v", got)
	}
	for _, v := range []*View{ours, friend} {
		if _, err := find(v, "b"); err == nil {
			t.Errorf("%s lists the foreign node", v.Self().Name)
		}
	}
}

func TestANodeGoesOnTryingItsSeeds(t *testing.T) {
	gone := start(t, "gone")
	addr := gone.Addr()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	early := start(t, "early", func(c *Config) { c.Join = []string{addr} })
	if n, err := early.tryJoin([]string{addr}); n != 0 || err == nil {
		t.Errorf("a node that is gone was joined: %d, %v", n, err)
	}
	var late *View
	// Another process may hold the port for a moment.
	wait(t, func() (err error) {
		late, err = Start(Config{Name: "late", ClusterID: "test", BindAddr: addr, Profile: ProfileLAN, Meta: Meta{Role: RoleStore}})
		return err
	})
	t.Cleanup(func() { late.Close() })
	meet(t, early, late)
}

func TestConfigurationsThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		edit func(*Config)
		want error
	}{
		{"no cluster", func(c *Config) { c.ClusterID = "" }, ErrConfig},
		{"long cluster", func(c *Config) { c.ClusterID = strings.Repeat("x", 256) }, ErrConfig},
		{"no name", func(c *Config) { c.Name = "" }, ErrConfig},
		{"slash in the name", func(c *Config) { c.Name = "a/b" }, ErrConfig},
		{"bind without port", func(c *Config) { c.BindAddr = "127.0.0.1" }, ErrConfig},
		{"bind port too large", func(c *Config) { c.BindAddr = "127.0.0.1:70000" }, ErrConfig},
		{"advertise nobody", func(c *Config) { c.Advertise = "0.0.0.0" }, ErrConfig},
		{"advertise a port, bind none", func(c *Config) { c.Advertise = "127.0.0.1:5" }, ErrConfig},
		{"seed without port", func(c *Config) { c.Join = []string{"127.0.0.1"} }, ErrConfig},
		{"no role", func(c *Config) { c.Meta.Role = "" }, ErrUnknownRole},
		{"profile", func(c *Config) { c.Profile = "moon" }, ErrUnknownProfile},
		{"metadata", func(c *Config) { c.Meta.Addr = strings.Repeat("x", 500) }, ErrMetaTooLarge},
	} {
		cfg := Config{Name: "a", ClusterID: "c", Meta: Meta{Role: RoleStore}}
		c.edit(&cfg)
		v, err := Start(cfg)
		if err == nil {
			v.Close()
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", c.what, err, c.want)
		}
	}
}

func TestAnAdvertisedAddressIsTheOneOthersUse(t *testing.T) {
	a := start(t, "a", func(c *Config) { c.BindAddr = "127.0.0.1:0"; c.Advertise = "127.0.0.1" })
	if !strings.HasPrefix(a.Addr(), "127.0.0.1:") || strings.HasSuffix(a.Addr(), ":0") {
		t.Errorf("got %s, want 127.0.0.1 and the bound port", a.Addr())
	}
	meet(t, a, start(t, "b", seed(a)))
}

func TestCallsFromManyGoroutinesAndCloseDoNotMind(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", seed(a))
	meet(t, a, b)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 50 {
				a.SetTableVersion(uint64(g*50 + i))
				a.Members()
			}
		})
	}
	wg.Go(func() { _ = a.Leave(t.Context()) })
	wg.Go(func() { _ = a.Close() })
	wg.Wait()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
