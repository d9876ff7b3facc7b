package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// ids is a log of what the requests of an exact space got.
type ids struct {
	mu  sync.Mutex
	got map[seq.UID]map[string]uint64 // first number, by id
	of  map[string]seq.UID            // whose each id is
	t   *testing.T
}

// add notes what a request has got: the same whenever it is repeated.
func (l *ids) add(uid seq.UID, id string, first uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.got[uid]
	if of == nil {
		of = map[string]uint64{}
		l.got[uid] = of
	}
	l.of[id] = uid
	if before := of[id]; before != 0 && before != first {
		l.t.Errorf("uid %d, id %q: got %d, and %d before", uid, id, first, before)
	}
	of[id] = first
}

// uid is whose id it is, 0 if it has none.
func (l *ids) uid(id string) seq.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[id]
}

// whole wants the numbers of each UID to be 1..n: each id has one, and there is no hole.
func (l *ids) whole() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, of := range l.got {
		var all []uint64
		for _, n := range of {
			all = append(all, n)
		}
		slices.Sort(all)
		for i, n := range all {
			if n != uint64(i+1) {
				l.t.Errorf("uid %d: number %d at place %d of %v", uid, n, i+1, all)
				break
			}
		}
	}
}

// once takes a number for a request wherever it can be had, and repeats it until it has one.
func (f *fleet) once(uid seq.UID, id string) (first uint64, replayed bool) {
	space, key := &f.stores.Mapping.Spaces[0], seq.PlainAll(uid)
	deadline := time.Now().Add(patient)
	for sent := time.Now(); ; {
		for _, n := range f.all() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			k := new(section.Taking)
			k.Set(n.Table, space, key, nil)
			k.Name([]section.Request{{ID: id, Sent: sent}})
			k.Pass(n.BatchClock())
			k.Settle(ctx)
			cancel()
			if got := k.Out(); len(got.Faults) == 0 {
				return got.First[0], got.Replayed != nil && got.Replayed[0]
			} else if err := got.Faults[0].Err; errors.Is(err, exact.ErrExpired) || errors.Is(err, exact.ErrConflict) {
				f.t.Errorf("uid %d, id %q: %v", uid, id, err)
				return 0, false
			}
		}
		if time.Now().After(deadline) {
			f.t.Errorf("no number for uid %d, id %q within %v", uid, id, patient)
			return 0, false
		}
		<-time.After(time.Millisecond)
	}
}

func exactSpace(sections uint32) seq.Space {
	return seq.Space{Name: "orders", Sections: sections, Mode: seq.Exact}
}

// Nodes are killed, leave and come back, stores fail and come back, while callers repeat each
// request until it is answered, and some that were answered again.
func TestAnExactSpaceHasNoHoleAndOneNumberARequest(t *testing.T) {
	f := newFleet(t, exactSpace(4))
	log := &ids{got: map[seq.UID]map[string]uint64{}, of: map[string]seq.UID{}, t: t}
	f.start("a", 2, "")
	f.start("b", 2, "")
	f.serving(f.all()...)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 7))
			for i := 0; ctx.Err() == nil; i++ {
				uid, id := seq.UID(1+rng.IntN(300)), fmt.Sprintf("%d-%d", c, i)
				if rng.IntN(4) == 0 && i > 0 { // an old one again
					id = fmt.Sprintf("%d-%d", c, rng.IntN(i))
					uid = log.uid(id)
				}
				if uid != 0 {
					first, _ := f.once(uid, id)
					log.add(uid, id, first)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for round := range 6 {
		time.Sleep(200 * time.Millisecond)
		name := []string{"a", "b"}[round%2]
		n := f.at(name)
		switch rng.IntN(3) {
		case 0:
			f.leave(n)
		default:
			n.kill()
			f.mu.Lock()
			delete(f.nodes, name)
			f.mu.Unlock()
		}
		store := f.stores.Stores[rng.IntN(3)]
		switch rng.IntN(3) {
		case 0:
			store.Restart()
		case 1:
			store.SetDown(true)
		}
		time.Sleep(300 * time.Millisecond)
		store.SetDown(false)
		f.start(name, 2, "")
	}
	f.serving(f.all()...)
	cancel()
	callers.Wait()
	log.whole()
	if len(log.got) < 100 {
		t.Errorf("only %d uids got anything", len(log.got))
	}
}

// askOnce takes a number for a request at one node.
func (n *node) askOnce(space *seq.Space, uid seq.UID, id string, patience time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k := new(section.Taking)
	k.Set(n.Table, space, seq.PlainAll(uid), nil)
	k.Name([]section.Request{{ID: id}})
	k.Pass(n.BatchClock())
	k.Settle(ctx)
	if got := k.Out(); len(got.Faults) > 0 {
		return 0, got.Faults[0].Err
	}
	return k.Out().First[0], nil
}

// Callers of an exact space take, read and raise numbers.
func TestAnExactSpaceAnswersWhatItsDisksHave(t *testing.T) {
	f := newFleet(t, exactSpace(4), seq.Space{Name: "user", Sections: 4})
	n := f.start("a", 1, "")
	f.serving(n)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	space, key := &f.stores.Mapping.Spaces[0], seq.Plain(7)
	want := func(what string, got uint64, err error, want uint64) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", what, got, err, want)
		}
	}
	got, err := n.askOnce(space, 7, "a", patient)
	want("the first", got, err, 1)
	value, err := n.Raise(ctx, space, key, 40, section.Reach{})
	want("a raise", value, err, 40)
	got, err = n.askOnce(space, 7, "b", patient)
	want("after a raise", got, err, 41)
	got, err = n.askOnce(space, 7, "a", patient)
	want("the first again", got, err, 1)
	now, faults := n.Current(ctx, space, seq.PlainAll(7, 8))
	if len(faults) > 0 || now[0].Value != 41 || now[0].UpperBound || now[1].Value != 0 || now[1].UpperBound {
		t.Errorf("current: got %+v, %v", now, faults)
	}
	if _, err := n.Raise(ctx, space, key, 41+seq.DefaultMaxJump+1, section.Reach{}); !errors.Is(err, seq.ErrJump) {
		t.Errorf("too far: got %v, want %v", err, seq.ErrJump)
	}
	value, err = n.Raise(ctx, space, key, 41+seq.DefaultMaxJump+1, section.Reach{Force: true})
	want("by force", value, err, 41+seq.DefaultMaxJump+1)
	if _, err := n.Raise(ctx, space, key, 1<<40, section.Reach{Within: 100}); !errors.Is(err, seq.ErrForbidden) {
		t.Errorf("beyond the grant: got %v, want %v", err, seq.ErrForbidden)
	}
	values, faults := n.RaiseAll(ctx, space, seq.PlainAll(8, 9), []uint64{3, 5}, 0)
	if len(faults) > 0 || values[0] != 3 || values[1] != 5 {
		t.Errorf("many raises: got %v, %v", values, faults)
	}
	if _, err := n.RaiseSection(ctx, 0, 100); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a section raised: got %v, want %v", err, seq.ErrBadArgument)
	}
	if found, err := n.Lookup(ctx, space, key, "b"); err != nil || found.First != 41 || found.Count != 1 {
		t.Errorf("lookup: got %+v, %v", found, err)
	}
	if found, err := n.Lookup(ctx, space, key, "c"); err != nil || found.First != 0 {
		t.Errorf("lookup of nothing: got %+v, %v", found, err)
	}
	if _, err := n.Lookup(ctx, &f.stores.Mapping.Spaces[1], key, "b"); err == nil {
		t.Error("looked up in an ordinary space")
	}
	uids := map[uint64]uint64{}
	for id := range seq.SectionID(4) {
		for from, more := uint64(0), true; more; {
			page, err := n.Page(ctx, id, from)
			if err != nil {
				t.Fatal(err)
			}
			for i, uid := range page.UIDs {
				uids[uid] = page.Values[i]
			}
			from, more = page.Next, page.Next != 0
		}
	}
	if len(uids) != 3 || uids[8] != 3 || uids[9] != 5 {
		t.Errorf("exported: got %v", uids)
	}
}

// Before the stores are ended for their memory, new UIDs and ids are refused by name; all that is
// known goes on, and so do ordinary spaces.
func TestStoresWithoutMemoryLetNoNewIDsIn(t *testing.T) {
	f := newFleet(t, exactSpace(4), seq.Space{Name: "user", Sections: 4})
	n := f.start("a", 1, "")
	f.serving(n)
	orders, user := &f.stores.Mapping.Spaces[0], &f.stores.Mapping.Spaces[1]
	if got, err := n.askOnce(orders, 7, "a", patient); err != nil || got != 1 {
		t.Fatal(got, err)
	}
	f.stores.Stores[0].SetFull(true)
	<-time.After(2 * f.lease) // it has heard by now
	if got, err := n.askOnce(orders, 7, "b", patient); err != nil || got != 2 {
		t.Errorf("one store of three is full: got %d, %v, want 2", got, err)
	}
	f.stores.Stores[1].SetFull(true)
	asked := 0
	f.until("new ids to be refused", func() bool {
		asked++
		_, err := n.askOnce(orders, 7, fmt.Sprint("c", asked), patient)
		return errors.Is(err, exact.ErrFull) && errors.Is(err, seq.ErrExactMemory) && strings.Contains(err.Error(), "space "+orders.Name+":") && strings.Contains(err.Error(), "store ")
	})
	if _, err := n.askOnce(orders, 8, "", patient); !errors.Is(err, exact.ErrFull) {
		t.Errorf("a new UID: got %v, want %v", err, exact.ErrFull)
	}
	if got, err := n.askOnce(orders, 7, "b", patient); err != nil || got != 2 {
		t.Errorf("a known id: got %d, %v, want 2", got, err)
	}
	if got, err := n.askOnce(orders, 7, "", patient); err != nil || got < 3 {
		t.Errorf("a known UID: got %d, %v, want the next", got, err)
	}
	if got := n.Take(t.Context(), user, seq.PlainAll(1, 2, 3), nil); len(got.Faults) > 0 {
		t.Errorf("an ordinary space: got %v", got.Faults)
	}
	f.stores.Stores[1].SetFull(false)
	f.until("new ids to be let in again", func() bool {
		_, err := n.askOnce(orders, 8, "d", patient)
		return err == nil
	})
}

func TestTheRaisesOfAnExactSpaceAddUpToABoundAnHour(t *testing.T) {
	space := exactSpace(1)
	space.MaxJump = 10
	f := newFleet(t, space)
	n := f.start("a", 1, "")
	f.serving(n)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	raise := func(uid seq.UID, floor uint64, reach section.Reach) error {
		_, err := n.Raise(ctx, &f.stores.Mapping.Spaces[0], seq.Plain(uid), floor, reach)
		return err
	}
	for uid := range seq.UID(40) { // a space is filled
		if err := raise(uid, 10, section.Reach{}); err != nil {
			t.Fatalf("the first raise of %d: %v", uid, err)
		}
	}
	for k := range uint64(16) {
		if err := raise(7, 20+10*k, section.Reach{}); err != nil {
			t.Fatalf("raise %d: %v", k, err)
		}
	}
	for uid, floor := range map[seq.UID]uint64{7: 180, 8: 20} {
		if err := raise(uid, floor, section.Reach{}); !errors.Is(err, seq.ErrJump) || !strings.Contains(err.Error(), "come again in ") {
			t.Errorf("uid %d beyond the sum: got %v", uid, err)
		}
	}
	if err := raise(7, 180, section.Reach{Force: true}); err != nil || len(n.raised(t)) != 1 {
		t.Errorf("with force: %v, events %v", err, n.raised(t))
	}
	if err := errors.Join(raise(7, 170, section.Reach{}), raise(99, 10, section.Reach{})); err != nil {
		t.Errorf("a repeated raise, and the first of a key: %v", err)
	}
}

// A node that has just started is not ready before it can answer for its exact sections. Afterwards, sections that
// it takes over make it no less ready.
func TestANodeIsReadyOnceTheCopiesOfItsExactSectionsAreRead(t *testing.T) {
	f := newFleet(t, exactSpace(4))
	unreadable := func(yes bool) {
		for _, s := range f.stores.Stores {
			s.SetUnreadable(yes)
		}
	}
	unreadable(true)
	n := f.start("a", 1, "")
	waitUntil(t, 30*time.Second, "the copies to be all that is missing", func() bool {
		err := n.Ready()
		return errors.Is(err, errTaking) && strings.Contains(err.Error(), "copies of 4 of 4")
	})
	unreadable(false)
	waitUntil(t, 30*time.Second, "the node to be ready", func() bool { return n.Ready() == nil })
	if _, _, _, reading := n.sections.Standing(func(seq.SectionID) bool { return true }); reading != 0 {
		t.Errorf("ready with %d copies to be read", reading)
	}
	// Sections that a node gets later make it no less ready.
	unreadable(true)
	n.kill()
	b := f.start("b", 1, "")
	b.begun.Store(true)
	waitUntil(t, 30*time.Second, "the other to have a section without its copy, and to be ready", func() bool {
		_, _, _, reading := b.sections.Standing(func(seq.SectionID) bool { return true })
		return reading > 0 && b.Ready() == nil
	})
	unreadable(false)
}
