package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

const sections = 12

// twoSets are Sets main and b, which has the odd sections.
func twoSets(t testing.TB, nodes int) *clienttest.Sets {
	t.Helper()
	s := clienttest.StartSets(t, []string{"main", "b"}, nodes, seq.Space{Name: "user", Sections: sections})
	for id := seq.SectionID(1); id < sections; id += 2 {
		s.Move(0, 1, id)
	}
	s.Publish()
	return s
}

// uidIn finds a UID of a section.
func uidIn(s *clienttest.Sets, id seq.SectionID) seq.UID {
	space := s.All[0].Mapping.Spaces[0]
	for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
		if space.SectionOf(uid) == id {
			return uid
		}
	}
}

// eachSection is a UID of every section.
func eachSection(s *clienttest.Sets) (uids []seq.UID) {
	for id := range seq.SectionID(sections) {
		uids = append(uids, uidIn(s, id))
	}
	return uids
}

// messages returns the number of messages that a Set received.
func messages(c *clienttest.Cluster) (n int64) {
	for _, node := range c.Nodes {
		n += node.Messages.Load() + node.Calls.Load()
	}
	return n
}

// keysOf returns the number of keys that a Set received in messages.
func keysOf(c *clienttest.Cluster) (n int64) {
	for _, node := range c.Nodes {
		n += node.Keys.Load()
	}
	return n
}

func knows(c *client.Client, sets int) func() bool {
	return func() bool {
		all := c.Sets().All
		for _, s := range all {
			if s.Routes == nil {
				return false
			}
		}
		return len(all) == sets
	}
}

func TestEachCallGoesToTheSetThatHasItsSection(t *testing.T) {
	for _, row := range []struct {
		name      string
		addrs     func(*clienttest.Sets) []string
		clusterID string
	}{
		{"addresses of the root", func(s *clienttest.Sets) []string { return s.All[0].Addrs() }, ""},
		{"addresses of the other Set", func(s *clienttest.Sets) []string { return s.All[1].Addrs() }, ""},
		{"addresses of both", func(s *clienttest.Sets) []string { return append(s.All[1].Addrs(), s.All[0].Addrs()...) }, ""},
		{"addresses of the root, and the other's id", func(s *clienttest.Sets) []string { return s.All[0].Addrs() }, "cluster-b"},
		{"addresses of the other, and the root's id", func(s *clienttest.Sets) []string { return s.All[1].Addrs() }, "cluster-main"},
	} {
		s := twoSets(t, 2)
		c := dial(t, s.All[0], client.Config{Addrs: row.addrs(s), ClusterID: row.clusterID})
		waitFor(t, row.name+": both tables", knows(c, 2))
		ctx, uids := bounded(t), eachSection(s)
		for id, uid := range uids {
			if _, err := c.Next(ctx, client.Key{UID: uid}); err != nil {
				t.Errorf("%s: section %d: %v", row.name, id, err)
			}
		}
		got, err := c.NextBatch(ctx, "", uids, nil)
		for id, r := range got {
			if r.Err != nil || r.First != 2 {
				t.Errorf("%s: section %d in a batch: %+v", row.name, id, r)
			}
		}
		o := &stream.Order{UIDs: uids}
		await(t, ctx, c, o)
		for id, r := range o.Ranges {
			if r.Err != nil || r.First != 3 {
				t.Errorf("%s: section %d in an order: %+v", row.name, id, r)
			}
		}
		values, err2 := c.Current(ctx, "", uids)
		for id, v := range values {
			if v.Err != nil || v.Seq != 3 {
				t.Errorf("%s: section %d: current %+v", row.name, id, v)
			}
		}
		if err := errors.Join(err, err2); err != nil {
			t.Error(row.name, err)
		}
		for i, of := range s.All { // none was asked for what it does not have
			if n := keysOf(of); n != 3*sections/2 {
				t.Errorf("%s: Set %d was asked for %d keys, want %d", row.name, i, n, 3*sections/2)
			}
		}
		if c.Caller().Table().ClusterID() != "cluster-main" || c.Caller().Table().Routes() == nil || c.Caller().Table().Routes().Nodes[0].Addr != s.All[0].Nodes[0].Addr() {
			t.Errorf("%s: the cluster is %q, its table %+v, want the root's", row.name, c.Caller().Table().ClusterID(), c.Caller().Table().Routes())
		}
		all := c.Sets().All
		if len(all) != 2 || all[1].Name != "b" || all[1].ClusterID != "cluster-b" || all[1].Sections != sections/2 || all[0].Sections != sections/2 || all[1].Away != nil {
			t.Errorf("%s: Sets: %+v", row.name, all)
		}
		_ = c.Close()
	}
}

func TestAClusterThatIsNoSetOfTheMapIsForeign(t *testing.T) {
	s := twoSets(t, 1)
	for _, addrs := range [][]string{s.All[0].Addrs(), s.All[1].Addrs()} {
		_, err := client.New(bounded(t), client.Config{Addrs: addrs, ClusterID: "another", AttemptTimeout: patience})
		if !errors.Is(err, seq.ErrForeignCluster) {
			t.Errorf("got %v, want %v", err, seq.ErrForeignCluster)
		}
	}
	others := clienttest.StartSets(t, []string{"x", "y"}, 1, seq.Space{Name: "user", Sections: sections})
	other := others.All[1] // whose map has itself
	c := dial(t, s.All[0], client.Config{Addrs: append(other.Addrs(), s.All[1].Addrs()...), ClusterID: "cluster-b"})
	for id, uid := range eachSection(s) {
		if _, err := c.Next(bounded(t), client.Key{UID: uid}); err != nil {
			t.Errorf("section %d: %v", id, err)
		}
	}
	if n := messages(other); n != 0 {
		t.Errorf("a foreign cluster was asked %d times", n)
	}
}

// Numbers rise and stay unique, and no call fails, while sections move back and forth. The map may be
// behind, ahead or silent, and the answers may lack addresses.
func TestSectionsMoveUnderLoad(t *testing.T) {
	s := twoSets(t, 2)
	c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 4 * patience})
	ctx, b := bounded(t), newBook(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	calls := make([]int, sections)
	for id, uid := range eachSection(s) {
		wg.Go(func() {
			key, before := client.Key{UID: uid}, seq.Seq(0)
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				var got client.Range
				var err error
				if n%2 == 0 {
					got, err = c.Take(ctx, key, 2)
				} else {
					var all []client.Range
					if all, err = c.NextBatch(ctx, "", []seq.UID{uid, uid}, nil); err == nil {
						got, err = client.Range{First: all[0].First, Last: all[1].Last}, errors.Join(all[0].Err, all[1].Err)
					}
				}
				if err != nil || got.First <= before {
					t.Errorf("section %d: got %+v, %v after %d", id, got, err, before)
					return
				}
				b.add(key, got.First, got.First)
				before = got.Last
				mu.Lock()
				calls[id]++
				mu.Unlock()
			}
		})
	}
	goOn := func(what string) {
		t.Helper()
		mu.Lock()
		begun := append([]int(nil), calls...)
		mu.Unlock()
		waitFor(t, what, func() bool {
			mu.Lock()
			defer mu.Unlock()
			for id, n := range calls {
				if n < begun[id]+3 && !t.Failed() {
					return false
				}
			}
			return true
		})
	}
	goOn("the start")
	s.Move(0, 1, 0, 2, 4)
	goOn("a move of which the map says nothing")
	s.Tell(1)
	goOn("a map that the other Set alone knows")
	s.Publish()
	goOn("the new map")
	for _, id := range []seq.SectionID{1, 3} {
		s.Seal(1, 0, id)
		s.Arrive(1, 0, id)
		s.Say(1, id, 0, false)
	}
	goOn("a move back that is told without an address")
	s.Note(6, 1)
	s.Publish()
	goOn("a map that is ahead of the Sets")
	s.Move(0, 1, 6)
	goOn("the arrival of what the map said")
	close(stop)
	wg.Wait()
}

// forRounds asks for a number, gives the call up after so many pauses, and gives its error.
func forRounds(t *testing.T, c *client.Client, key client.Key, rounds uint64) error {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	before, got := c.Stats().Pauses, make(chan error, 1)
	go func() {
		_, err := c.Next(ctx, key)
		got <- err
	}()
	waitFor(t, "rounds", func() bool { return c.Stats().Pauses >= before+rounds || len(got) > 0 })
	cancel()
	return <-got
}

func TestTwoSetsThatNameEachOtherAreNotAskedWithoutAPause(t *testing.T) {
	for _, addr := range []bool{true, false} {
		s := twoSets(t, 3)
		c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 4 * patience})
		waitFor(t, "both tables", knows(c, 2))
		key := client.Key{UID: uidIn(s, 4)}
		s.Say(0, 4, 1, addr) // it is on its way, and Set b does not have it yet
		s.Say(1, 4, 0, addr)
		asked := func() int64 { return messages(s.All[0]) + messages(s.All[1]) }
		before, pauses := asked(), c.Stats().Pauses
		err := forRounds(t, c, key, 8)
		if !errors.Is(err, seq.ErrNotOwner) {
			t.Errorf("got %v, want %v as the reason", err, seq.ErrNotOwner)
		}
		rounds := int64(c.Stats().Pauses-pauses) + 1
		if n := asked() - before; n > 12*rounds {
			t.Errorf("%d attempts in %d rounds", n, rounds)
		}
		got := make(chan error, 1)
		go func() {
			_, err := c.Next(bounded(t), key)
			got <- err
		}()
		s.Arrive(0, 1, 4)
		if err := <-got; err != nil {
			t.Errorf("when it has arrived: %v", err)
		}
	}
}

// The Client cannot tell which cluster such a call would reach.
func TestTheAddressOfASetThatTheMapDoesNotNameIsNotAsked(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b"}, 1, seq.Space{Name: "user", Sections: sections})
	s.Alone(0)
	c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 4 * patience})
	if all := c.Sets(); len(all.All) != 1 || all.All[0].Name != "" || all.Map.Version != 0 {
		t.Errorf("a cluster that is alone: got %+v", all)
	}
	key := client.Key{UID: uidIn(s, 4)}
	if _, err := c.Next(bounded(t), key); err != nil {
		t.Fatal(err)
	}
	s.Move(0, 1, 4)
	err := forRounds(t, c, key, 8)
	if !errors.Is(err, seq.ErrNotOwner) || messages(s.All[1]) != 0 {
		t.Errorf("got %v, and %d messages to the unknown Set", err, messages(s.All[1]))
	}
	s.Publish()
	if n, err := c.Next(bounded(t), key); err != nil || n != 2 {
		t.Errorf("with the map: got %d, %v", n, err)
	}
}

// A Set whose servers know nothing of Sets is one all the same, by its cluster's id.
func TestServersThatKnowNothingOfSetsAreServed(t *testing.T) {
	s := twoSets(t, 2)
	s.Alone(1)
	c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs()})
	waitFor(t, "both tables", knows(c, 2))
	s.All[1].TakeOver(0, 1)
	s.All[1].Publish()
	for id, uid := range eachSection(s) {
		if _, err := c.Next(bounded(t), client.Key{UID: uid}); err != nil {
			t.Errorf("section %d: %v", id, err)
		}
	}
}

func TestANewerTableInAReplyIsOfTheSetThatAnswered(t *testing.T) {
	s := twoSets(t, 2)
	for range 5 {
		s.All[0].Publish() // the root's versions are far ahead
	}
	c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs()})
	waitFor(t, "both tables", knows(c, 2))
	s.All[1].TakeOver(0, 1)
	s.All[1].Publish()
	for id := seq.SectionID(1); id < sections; id += 2 {
		if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, id)}); err != nil {
			t.Fatal(err)
		}
	}
	all := c.Sets().All
	if all[0].Routes.Version != 6 || all[1].Routes.Version != 2 || c.Caller().Table().Routes().Version != 6 {
		t.Errorf("tables %d and %d, want 6 and 2", all[0].Routes.Version, all[1].Routes.Version)
	}
	before := keysOf(s.All[1])
	if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, 1)}); err != nil || keysOf(s.All[1])-before != 1 {
		t.Errorf("got %v by %d attempts, want the new owner to be asked", err, keysOf(s.All[1])-before)
	}
}

// Neither the map nor Config has addresses of the root, so the Client finds it by a NOT_OWNER.
func TestARootWithoutAddressesIsFoundByAnAnswer(t *testing.T) {
	s := twoSets(t, 2)
	s.Forget(0)
	s.Publish()
	c := dial(t, s.All[0], client.Config{Addrs: s.All[1].Addrs()})
	for _, id := range []seq.SectionID{1, 4, 0} {
		if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, id)}); err != nil {
			t.Errorf("section %d: %v", id, err)
		}
	}
	waitFor(t, "the root's table", knows(c, 2))
	before := keysOf(s.All[1])
	if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, 4)}); err != nil || keysOf(s.All[1]) != before {
		t.Errorf("got %v, want the root to be asked", err)
	}
}

// outages are two ways in which a Set is out of service.
var outages = []struct {
	name   string
	begin  func(*clienttest.Cluster)
	end    func(*clienttest.Cluster)
	reason error
}{
	{"dead", (*clienttest.Cluster).Kill, func(c *clienttest.Cluster) {
		for _, n := range c.Nodes {
			n.Restart()
		}
	}, client.ErrUnreachable},
	{"without a quorum", func(c *clienttest.Cluster) { refuse(c, errMissing) }, func(c *clienttest.Cluster) { refuse(c, nil) }, seq.ErrNoQuorum},
}

func TestASetThatIsOutOfServiceTouchesNoOther(t *testing.T) {
	for _, out := range outages {
		for dead := range 2 {
			s := twoSets(t, 3)
			c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 4 * patience})
			waitFor(t, "both tables", knows(c, 2))
			out.begin(s.All[dead])
			name := s.All[dead].ID + " " + out.name
			uids, begun := eachSection(s), time.Now()
			named := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, out.reason) || errors.Is(err, context.DeadlineExceeded) ||
					!strings.Contains(err.Error(), "Set "+c.Sets().All[dead].Name+":") {
					t.Errorf("%s: %s: got %v, want a %v that names the Set", name, what, err, seq.ErrNoQuorum)
				}
			}
			var wg sync.WaitGroup
			for id, uid := range uids {
				wg.Go(func() {
					_, err := c.Next(bounded(t), client.Key{UID: uid})
					if id%2 == dead {
						named("next", err)
					} else if err != nil {
						t.Errorf("%s: section %d of the living Set: %v", name, id, err)
					}
				})
			}
			wg.Wait()
			if took := time.Since(begun); took > patience {
				t.Errorf("%s: its callers waited for %v", name, took)
			}
			got, err := c.NextBatch(bounded(t), "", uids, nil)
			if err != nil {
				t.Error(name, err)
			}
			for id, r := range got {
				if id%2 == dead {
					named("in a batch", r.Err)
				} else if r.Err != nil || r.First != 2 {
					t.Errorf("%s: section %d of the living Set, in a batch: %+v", name, id, r)
				}
			}
			all := c.Sets().All
			if all[dead].Away == nil || all[1-dead].Away != nil || c.Caller().QuorumLost() != nil {
				t.Errorf("%s: shown as %v and %v, and as lost: %v", name, all[0].Away, all[1].Away, c.Caller().QuorumLost())
			}
			out.end(s.All[dead])
			waitFor(t, name+" and back", func() bool {
				_, err := c.Next(bounded(t), client.Key{UID: uids[dead]})
				return err == nil
			})
			waitFor(t, name+" and shown as back", func() bool { return c.Sets().All[dead].Away == nil })
			_ = c.Close()
		}
	}
}

// A Client that begins while a Set is dead serves the others, and the dead one when it is back.
func TestAClientBeginsWhileASetIsDead(t *testing.T) {
	for dead := range 2 {
		s := twoSets(t, 2)
		s.All[dead].Kill()
		c := dial(t, s.All[0], client.Config{Addrs: append(s.All[0].Addrs(), s.All[1].Addrs()...), Timeout: 4 * patience})
		ctx := bounded(t)
		if _, err := c.Next(ctx, client.Key{UID: uidIn(s, seq.SectionID(1-dead))}); err != nil {
			t.Error(err)
		}
		if _, err := c.Next(ctx, client.Key{UID: uidIn(s, seq.SectionID(dead))}); !errors.Is(err, client.ErrUnreachable) || !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("in the dead Set: got %v", err)
		}
		for _, n := range s.All[dead].Nodes {
			n.Restart()
		}
		waitFor(t, "the dead Set", func() bool {
			_, err := c.Next(ctx, client.Key{UID: uidIn(s, seq.SectionID(dead))})
			return err == nil
		})
		_ = c.Close()
	}
}

// Set c hangs; a section of b was handed over, so that its key is sent on before c's attempt ends.
func TestAKeyOfOneSetIsSentOnWhileAnotherHangs(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b", "c"}, 2, seq.Space{Name: "user", Sections: sections})
	s.Move(0, 1, 1)
	s.Move(0, 2, 2)
	s.Publish()
	c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 8 * patience, AttemptTimeout: 4 * patience})
	waitFor(t, "three tables", knows(c, 3))
	uids := []seq.UID{uidIn(s, 2), uidIn(s, 1), uidIn(s, 0), uidIn(s, 1)}
	for name, call := range map[string]func() []error{
		"NextBatch": func() (errs []error) {
			got, err := c.NextBatch(bounded(t), "", uids, nil)
			for _, r := range got {
				errs = append(errs, r.Err)
			}
			if err == nil && got[3].First != got[1].First+1 {
				t.Errorf("numbers of one UID: %+v", got)
			}
			return append(errs, err)
		},
		"Current": func() (errs []error) {
			got, err := c.Current(bounded(t), "", uids)
			for _, v := range got {
				errs = append(errs, v.Err)
			}
			return append(errs, err)
		},
		"RaiseBatch": func() (errs []error) {
			got, err := c.RaiseBatch(bounded(t), "", uids, make([]seq.Seq, len(uids)))
			for _, r := range got {
				errs = append(errs, r.Err)
			}
			return append(errs, err)
		},
	} {
		was := s.All[1].Owner(1)
		s.All[1].TakeOver(was, 1-was)
		heir := s.All[1].Nodes[1-was]
		before := heir.Messages.Load() + heir.Calls.Load()
		s.All[2].Hang()
		done := make(chan []error, 1)
		go func() { done <- call() }()
		waitFor(t, name+": the key to be sent on", func() bool { return heir.Messages.Load()+heir.Calls.Load() > before })
		s.All[2].Resume()
		if errs := <-done; len(errs) != len(uids)+1 || errors.Join(errs...) != nil {
			t.Errorf("%s: %v", name, errs)
		}
		s.All[1].Publish()
		c.Caller().Table().Refresh()
		waitFor(t, name+": the table of the heir", func() bool {
			_, err := c.Next(bounded(t), client.Key{UID: uidIn(s, 1)})
			return err == nil && c.Sets().All[1].Routes.Version == s.All[1].Routes().Version
		})
	}
}

// Calls for IDs go by the nodes of a Set that hangs, and come back to it when it does not any more.
func TestIDsComeFromTheOtherSetsWhileOneHangs(t *testing.T) {
	for hung := range 2 {
		s := twoSets(t, 3)
		c := dial(t, s.All[0], client.Config{Addrs: s.All[0].Addrs(), Timeout: 4 * patience, AttemptTimeout: 100 * time.Millisecond})
		waitFor(t, "both tables", knows(c, 2))
		all := func(n int64) func() bool { // nodes of the Set were asked so often
			return func() bool {
				for _, node := range s.All[hung].Nodes {
					if node.Generates.Load() < n {
						return false
					}
				}
				return true
			}
		}
		s.All[hung].Hang()
		ctx, stop := context.WithCancel(bounded(t))
		var wg sync.WaitGroup
		var answers atomic.Int64
		for i := range 16 {
			wg.Go(func() {
				for {
					_, err := c.Generate(ctx, "", uint32(1+i/12))
					if ctx.Err() != nil {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					answers.Add(1)
				}
			})
		}
		waitFor(t, "all that hang to be met", all(1))
		met := answers.Load()
		waitFor(t, "IDs of the other Set", func() bool { return answers.Load() > met+200 })
		s.All[hung].Resume()
		met = generates(s.All[hung]) + 1
		waitFor(t, "IDs of both Sets", all(met))
		stop()
		wg.Wait()
		_ = c.Close()
	}
}

// A caller may be as old as it likes: also while the root does not answer, it hears at the other Sets of a
// section that left the root.
func TestAnOldMapIsRenewedAtAnotherSetWhileTheRootDoesNotAnswer(t *testing.T) {
	for name, end := range map[string]func(*clienttest.Cluster){"dead": (*clienttest.Cluster).Kill, "hangs": (*clienttest.Cluster).Hang} {
		s := twoSets(t, 2)
		c := dial(t, s.All[0], client.Config{Addrs: append(s.All[0].Addrs(), s.All[1].Addrs()...), AttemptTimeout: 100 * time.Millisecond})
		waitFor(t, "both tables", knows(c, 2))
		s.Move(0, 1, 4)
		s.Publish()
		end(s.All[0])
		waitFor(t, name+": a number of the section that b has", func() bool {
			_, err := c.Next(bounded(t), client.Key{UID: uidIn(s, 4)})
			return err == nil
		})
		_ = c.Close()
	}
}

func TestASpaceThatWasAddedIsKnownWhileTheRootIsDead(t *testing.T) {
	s := twoSets(t, 2)
	c := dial(t, s.All[0], client.Config{Addrs: append(s.All[0].Addrs(), s.All[1].Addrs()...)})
	waitFor(t, "both tables", knows(c, 2))
	for _, of := range s.All {
		if err := of.AddSpace(seq.Space{Name: "pts", Sections: 2}); err != nil {
			t.Fatal(err)
		}
	}
	s.All[0].Kill()
	if _, err := c.Next(bounded(t), client.Key{Space: "pts", UID: 1}); errors.Is(err, seq.ErrUnknownSpace) || err == nil {
		t.Errorf("got %v, want that the Set that has it does not answer", err)
	}
}

func TestTagsAreTheRootsAloneAndIDsComeFromAllSets(t *testing.T) {
	s := twoSets(t, 2)
	s.All[0].AddTag("order")
	s.Move(0, 1, 0, 2, 4, 6, 8, 10) // wherever the tag is placed
	s.Publish()
	c := dial(t, s.All[0], client.Config{Addrs: append(s.All[1].Addrs(), s.All[0].Addrs()...), Timeout: 4 * patience})
	waitFor(t, "both tables", knows(c, 2))
	ctx := bounded(t)
	for range 8 {
		if _, err := c.Generate(ctx, "", 3); err != nil {
			t.Error(err)
		}
		if _, _, err := c.TakeSegment(ctx, "order", 1); err != nil {
			t.Error(err)
		}
	}
	for i, set := range s.All {
		for k, n := range set.Nodes {
			if n.Generates.Load() == 0 {
				t.Errorf("node %d of Set %d was not asked for IDs", k, i)
			}
			if i > 0 && n.Takes.Load() > 0 {
				t.Errorf("node %d of Set %d was asked for segments", k, i)
			}
		}
	}
	nodes, err := c.Caller().Nodes(ctx)
	if err != nil || len(nodes) != 2 {
		t.Errorf("%d nodes, %v, want those of the root", len(nodes), err)
	}
	ids := map[string]func() error{
		"ids": func() error { _, err := c.Generate(ctx, "", 3); return err },
		"id":  func() error { _, err := c.NextID(ctx, ""); return err },
		"by Any": func() error {
			_, err := pb.NewSnowflakeClient(c.Caller().Any()).Generate(ctx, &pb.SnowflakeGenerateRequest{Count: 1})
			return err
		},
	}
	s.All[0].Kill()
	if _, _, err := c.TakeSegment(ctx, "order", 1); !errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(err.Error(), "Set main:") {
		t.Errorf("a segment without the root: got %v", err)
	}
	for name, ask := range ids {
		if err := ask(); err != nil {
			t.Errorf("%s without the root: got %v", name, err)
		}
	}
	if _, err := c.Next(ctx, client.Key{UID: uidIn(s, 0)}); err != nil {
		t.Errorf("without the root: %v", err)
	}
	s.All[1].Kill()
	for name, ask := range ids {
		if err := ask(); !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("%s without any Set: got %v", name, err)
		}
	}
}
