package quorum

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// listOf is a list of voters by one letter each, and a learner behind a bar.
func listOf(version uint64, r, w int, letters string) MemberList {
	l := MemberList{Version: version, R: r, W: w}
	learner := false
	for _, c := range letters {
		if c == '|' {
			learner = true
			continue
		}
		l.Members = append(l.Members, Member{UUID: string(c), Name: string(c), Addr: string(c) + ":1", Learner: learner})
	}
	return l
}

// subsets calls do with every set of k of the members.
func subsets(of []Member, k int, do func([]Member)) {
	var pick func(from int, have []Member)
	pick = func(from int, have []Member) {
		if len(have) == k {
			do(have)
			return
		}
		for i := from; i < len(of); i++ {
			pick(i+1, append(have[:len(have):len(have)], of[i]))
		}
	}
	pick(0, nil)
}

// meet says whether every q of a's voters have one with every p of b's in common.
func meet(a MemberList, q int, b MemberList, p int) bool {
	all := true
	subsets(a.Voters(), q, func(x []Member) {
		subsets(b.Voters(), p, func(y []Member) {
			shared := false
			for _, m := range x {
				for _, o := range y {
					shared = shared || m.UUID == o.UUID
				}
			}
			all = all && shared
		})
	})
	return all
}

// safe are the lists of the voters that can be safe, by all R and W.
func safe(version uint64, letters string) (lists []MemberList) {
	for r := range len(letters) {
		for w := range len(letters) {
			if l := listOf(version, r+1, w+1, letters); l.Validate() == nil {
				lists = append(lists, l)
			}
		}
	}
	return lists
}

func TestOverlapIsWhatCountingAllQuorumsSays(t *testing.T) {
	sets := []string{"abc", "ab", "ab|d", "abd", "abcd", "abce", "abcde", "abcd|e", "bcde", "a", "cde", "de"}
	for _, x := range sets {
		for _, y := range sets {
			for _, a := range safe(1, x) {
				for _, b := range safe(2, y) {
					want := meet(a, a.W, b, b.W) && meet(a, a.W, b, b.R) && meet(a, a.R, b, b.W)
					if got := Overlap(a, b); (got == nil) != want {
						t.Errorf("%s R=%d W=%d to %s R=%d W=%d: got %v, counting says %v", x, a.R, a.W, y, b.R, b.W, got, want)
					}
				}
			}
		}
	}
}

func TestAListThatCannotBeSafeIsRefused(t *testing.T) {
	twice := listOf(1, 2, 2, "abc")
	twice.Members[1].UUID = "a"
	for name, l := range map[string]MemberList{
		"W too small":  listOf(1, 3, 1, "abc"),
		"R too small":  listOf(1, 1, 2, "abc"),
		"W above N":    listOf(1, 2, 3, "ab|c"),
		"no version":   listOf(0, 2, 2, "abc"),
		"two learners": listOf(1, 2, 2, "abc|de"),
		"a uuid twice": twice,
		"nobody":       listOf(1, 1, 1, ""),
	} {
		if err := l.Validate(); !errors.Is(err, ErrBadConfig) {
			t.Errorf("%s: got %v, want ErrBadConfig", name, err)
		}
	}
	if err := listOf(2, 2, 2, "ab|d").Validate(); err != nil {
		t.Error(err)
	}
}

func TestMergeHasEverythingOfBothInAnyOrder(t *testing.T) {
	a := RegisterState{Register: "dx", Promised: epoch(5, 1), Accepted: epoch(2, 1), Max: 9, Payload: []byte("old"), PayloadMax: 7}
	b := RegisterState{Register: "dx", Promised: epoch(4, 2), Accepted: epoch(4, 2), Max: 8, Payload: []byte("new"), PayloadMax: 8}
	want := fmt.Sprint(RegisterState{Register: "dx", Promised: epoch(5, 1), Accepted: epoch(4, 2), Max: 9, Payload: []byte("new"), PayloadMax: 8})
	for _, got := range []RegisterState{Merge(a, b), Merge(b, a), Merge(Merge(a, b), a)} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestAGroupGoesOverToANewerListAndRepeatsWhatWasRefused(t *testing.T) {
	reg := seq.SectionRegister(1)
	fakes, stores := fakeStores(4, true, reg)
	var g *Group
	next := Config{Ref: Ref{Cluster: "c", Members: 2}, N: 3, R: 2, W: 2}
	// The stores have the second list; a group that is told fetches it.
	stale := func() {
		go func() {
			if err := g.Reconfigure(next, []NamedStore{stores[0], stores[1], stores[3]}); err != nil {
				t.Error(err)
			}
		}()
	}
	for _, f := range fakes[:3] {
		f.script(func(string) fault {
			if g.Config().Ref.Members == 1 {
				return fault{before: fmt.Errorf("%w: newer", seq.ErrStaleEra)}
			}
			return fault{}
		})
	}
	g, err := NewGroup(Config{Ref: Ref{Cluster: "c", Members: 1}, N: 3, R: 2, W: 2, OnStale: stale}, stores[:3])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	out := g.Prepare(t.Context(), me, []PrepareItem{{Register: reg, Round: 1}})[0]
	if out.State != Won {
		t.Errorf("got %v, %v", out.State, out.Err)
	}
	if got := g.Config(); got.Ref != next.Ref {
		t.Errorf("the group goes by %+v", got)
	}
	if err := g.Reconfigure(Config{N: 3, R: 1, W: 1}, stores[:3]); !errors.Is(err, ErrBadConfig) {
		t.Errorf("got %v, want ErrBadConfig", err)
	}
}

func TestLeasesKeepWhatStaysAndForgetWhatGoes(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(seq.SectionRegister(1), 4)
	r.renew(RenewReply{}, 0, 1, 2)
	r.until(h, Term(lease))
	_, late := r.send(2)
	goes := r.now.Load().stores[2]

	_, stores := fakeStores(4, true)
	if err := r.Reconfigure(Ref{Cluster: "c", Members: 2}, 2, stores[:2]); err != nil {
		t.Fatal(err)
	}
	r.until(h, Term(lease)) // by the two that stay
	r.clock.Advance(lease / 2)
	r.renewed(goes, late, RenewReply{UUID: "uuid-2", BootCount: 1}, r.clock.Now())
	r.until(h, Term(lease)-lease/2)

	if err := r.Reconfigure(Ref{Cluster: "c", Members: 3}, 2, []NamedStore{stores[0], stores[1], stores[3]}); err != nil {
		t.Fatal(err)
	}
	r.until(h, Term(lease)-lease/2)
	req, sent := r.send(2)
	if len(req.Attach) != 1 || req.Ref.Members != 3 {
		t.Errorf("the new store is sent %+v", req)
	}
	r.reply(2, sent, RenewReply{UUID: "uuid-3"})
	r.until(h, Term(lease)-lease/2) // one new renewal, and one old
	r.renew(RenewReply{}, 0)
	r.until(h, Term(lease))
	if r.Connected() != 3 {
		t.Errorf("%d connected", r.Connected())
	}
}

func TestALeaseNeedsAsManyStoresAsTheNewListSays(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(seq.SectionRegister(1), 4)
	r.renew(RenewReply{}, 0, 1)
	r.until(h, Term(lease))
	_, stores := fakeStores(5, true)
	if err := r.Reconfigure(Ref{Cluster: "c", Members: 2}, 3, stores); err != nil {
		t.Fatal(err)
	}
	r.until(h, 0)
	r.renew(RenewReply{}, 3)
	r.until(h, Term(lease))
}
