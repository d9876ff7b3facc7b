package registers

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// stepSize is the distance by which the rows move a max.
const stepSize = 100

// quorumRows are about all replicas together, seen as allocsvr sees them.
var quorumRows = []row{
	{"what was confirmed is found after the loss of any minority", func(b *bench) {
		b.needRestart()
		regs, _ := b.registers()
		top, n := uint64(0), len(b.Replicas)
		for i := range 2 * n {
			var dead []Replica
			for j := range n - max(b.R, b.W) {
				dead = append(dead, b.Replicas[(i+j)%n])
				dead[j].Kill()
			}
			base, ok := b.take(regs, sessiontest.Session(uint64(100+i)), uint64(i+1))
			if !ok || base < top {
				b.Fatalf("take %d: got base %d, %v, want at least %d", i, base, ok, top)
			}
			top = base + stepSize
			for _, r := range dead {
				r.Restart()
			}
		}
	}},
	{"without a quorum nothing is confirmed, and the same step may be sent again", func(b *bench) {
		b.needRestart()
		regs, _ := b.registers()
		if _, ok := b.take(regs, alice, 1); !ok {
			b.Fatal("not taken")
		}
		lost := b.Replicas[:len(b.Replicas)-b.W+1]
		for _, r := range lost {
			r.Kill()
		}
		step := []quorum.StepItem{{Register: section, Round: 1, Max: 2 * stepSize}}
		if got := regs.Step(b.context(), alice, step)[0]; got.State != quorum.Unknown || !errors.Is(got.Err, seq.ErrNoQuorum) {
			b.Errorf("step: got %s, %v, want unknown for want of a quorum", got.State, got.Err)
		}
		if got := regs.Prepare(b.context(), bob, []quorum.PrepareItem{{Register: section1, Round: 1}})[0]; got.State == quorum.Won {
			b.Errorf("prepare: got %+v, want it not won", got)
		}
		for _, r := range lost {
			r.Restart()
		}
		if got := regs.Step(b.context(), alice, step)[0]; got.State != quorum.Won {
			b.Errorf("the step again: got %s, %v, want won", got.State, got.Err)
		}
		if base, ok := b.take(regs, bob, 2); !ok || base != 2*stepSize {
			b.Errorf("the next owner: got base %d, %v, want %d", base, ok, 2*stepSize)
		}
	}},
	{"a deposed owner confirms nothing any more", func(b *bench) {
		regs, _ := b.registers()
		if _, ok := b.take(regs, alice, 1); !ok {
			b.Fatal("not taken")
		}
		if base, ok := b.take(regs, bob, 2); !ok || base != stepSize {
			b.Fatalf("got base %d, %v, want %d", base, ok, stepSize)
		}
		got := regs.Step(b.context(), alice, []quorum.StepItem{{Register: section, Round: 1, Max: 9 * stepSize}})[0]
		if got.State != quorum.Refused || !errors.Is(got.Err, quorum.ErrNack) || got.Promised != epoch(2, bob) {
			b.Errorf("got %s, %v with %v, want refused with %v", got.State, got.Err, got.Promised, epoch(2, bob))
		}
	}},
	{"ranges of rivals never overlap", rivals},
	{"a probe tells who holds a register and deposes nobody", func(b *bench) {
		regs, _ := b.registers()
		if _, ok := b.take(regs, alice, 1); !ok {
			b.Fatal("not taken")
		}
		b.attachEverywhere(alice, item(section, 1))
		got := regs.Probe(b.context(), bob, []seq.Register{section1, section, tag})
		if got[0].State != quorum.Won || got[2].State != quorum.Won {
			b.Errorf("free registers: got %s and %s, want won", got[0].State, got[2].State)
		}
		if o := got[1]; o.State != quorum.Refused || !errors.Is(o.Err, quorum.ErrHeld) || o.Holder != alice || o.Remaining <= 0 || o.Remaining > lease {
			b.Errorf("got %+v, want it held by %v", o, alice)
		}
		step := []quorum.StepItem{{Register: section, Round: 1, Max: 2 * stepSize}}
		if o := regs.Step(b.context(), alice, step)[0]; o.State != quorum.Won {
			b.Errorf("the holder's step: got %s, %v", o.State, o.Err)
		}
		if err := regs.EndSession(b.context(), sessiontest.SecretOf(alice)); err != nil {
			b.Fatal(err)
		}
		if o := regs.Probe(b.context(), bob, []seq.Register{section})[0]; o.State != quorum.Won {
			b.Errorf("after the end of its session: got %s, %v, want won", o.State, o.Err)
		}
	}},
	{"a released register goes to its successor", func(b *bench) {
		regs, _ := b.registers()
		if _, ok := b.take(regs, alice, 1); !ok {
			b.Fatal("not taken")
		}
		b.attachEverywhere(alice, item(section, 1))
		if err := regs.Release(b.context(), alice, []quorum.LeaseItem{item(section, 1)}, carol); err != nil {
			b.Fatal(err)
		}
		got := regs.Prepare(b.context(), carol, []quorum.PrepareItem{{Register: section, Round: 2}})[0]
		if got.State != quorum.Won || got.Accepted != epoch(1, alice) || got.Max != stepSize {
			b.Errorf("got %+v, want won, with %d accepted under %v", got, stepSize, epoch(1, alice))
		}
	}},
	{"outcomes come in the order of the batch", func(b *bench) {
		regs, _ := b.registers()
		missing := seq.SectionRegister(seq.SectionID(b.Mapping.Sections()))
		got := regs.Prepare(b.context(), alice, []quorum.PrepareItem{{Register: section1, Round: 4}, {Register: missing, Round: 4}, {Register: section, Round: 5}})
		if got[0].Promised != epoch(4, alice) || got[2].Promised != epoch(5, alice) || !errors.Is(got[1].Err, seq.ErrUnknownRegister) {
			b.Errorf("prepare: got %+v, want 4, unknown, 5", got)
		}
		got = regs.Step(b.context(), alice, []quorum.StepItem{{Register: section, Round: 5, Max: 50}, {Register: missing, Round: 4, Max: 1}, {Register: section1, Round: 4, Max: 40}})
		if got[0].Max != 50 || got[2].Max != 40 || got[1].State == quorum.Won {
			b.Errorf("step: got %+v, want 50, refused, 40", got)
		}
	}},
	{"a document changes only from the version that the writer has seen", func(b *bench) {
		_, docs := b.registers()
		if got, err := docs.LoadDocument(b.context(), alice, document); err != nil || got.Version != 0 || len(got.Body) > 0 {
			b.Fatalf("before any change: got %+v, %v", got, err)
		}
		if got, err := docs.SwapDocument(b.context(), alice, document, 0, []byte("one")); err != nil || got.Version != 1 {
			b.Fatalf("the first: got %+v, %v", got, err)
		}
		got, err := docs.SwapDocument(b.context(), bob, document, 0, []byte("uno"))
		if !errors.Is(err, seq.ErrConflict) || got.Version != 1 || string(got.Body) != "one" {
			b.Errorf("from an old version: got %+v, %v, want a conflict with version 1", got, err)
		}
		if _, err := docs.SwapDocument(b.context(), bob, document, 1, []byte("two")); err != nil {
			b.Errorf("from this version: %v", err)
		}
		if b.Replicas[0].Kill != nil {
			for _, r := range b.Replicas {
				r.Kill()
			}
			for _, r := range b.Replicas {
				r.Restart()
			}
		}
		if got, err := docs.LoadDocument(b.context(), carol, document); err != nil || got.Version != 2 || string(got.Body) != "two" {
			b.Errorf("after a restart of all: got %+v, %v, want version 2", got, err)
		}
	}},
	{"of many writers of a document one wins each version", writers},
}

// take acquires section 0 and takes one step; base is what it starts above.
func (b *bench) take(regs ownership.Registers, who seq.Session, round uint64) (base uint64, ok bool) {
	prepared := regs.Prepare(b.context(), who, []quorum.PrepareItem{{Register: section, Round: round}})[0]
	if prepared.State != quorum.Won {
		b.Logf("prepare %v: %s, %v", epoch(round, who), prepared.State, prepared.Err)
		return prepared.Max, false
	}
	stepped := regs.Step(b.context(), who, []quorum.StepItem{{Register: section, Round: round, Max: prepared.Max + stepSize}})[0]
	if stepped.State != quorum.Won {
		b.Logf("step %v: %s, %v", epoch(round, who), stepped.State, stepped.Err)
	}
	return prepared.Max, stepped.State == quorum.Won
}

// attachEverywhere leases the register at every replica. Those beyond W may hear of
// its epoch a moment after it was won.
func (b *bench) attachEverywhere(who seq.Session, it quorum.LeaseItem) {
	b.Helper()
	ctx := b.context()
	for _, r := range b.Replicas {
		for {
			reply, err := r.Store.Renew(ctx, b.renewal(who, 1, it))
			if err != nil {
				b.Fatalf("lease at %s: %v", r.Name, err)
			}
			if len(reply.Refused) == 0 {
				break
			}
			<-time.After(time.Millisecond)
		}
	}
}

// rivals take the same section from each other as fast as they can, without leases.
func rivals(b *bench) {
	const sessions, attempts = 4, 15
	regs, _ := b.registers()
	var mu sync.Mutex // guards bases
	var bases []uint64
	var wg sync.WaitGroup
	for i := range sessions {
		who := sessiontest.Session(uint64(100 + i))
		wg.Go(func() {
			for range attempts {
				seen := regs.Probe(b.context(), who, []seq.Register{section})[0].Promised
				if base, ok := b.take(regs, who, seen.Round+1); ok {
					mu.Lock()
					bases = append(bases, base)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	base, ok := b.take(regs, carol, 1_000_000)
	if !ok {
		b.Fatal("nobody can take it when all is quiet")
	}
	bases = append(bases, base)
	slices.Sort(bases)
	for i := 1; i < len(bases); i++ {
		if bases[i] < bases[i-1]+stepSize {
			b.Errorf("two owners took %d and %d, want them at least %d apart", bases[i-1], bases[i], stepSize)
		}
	}
	if bases[len(bases)-1] != base {
		b.Errorf("the last owner starts above %d, want %d, above all others", base, bases[len(bases)-1])
	}
}

// writers change the same document at the same time.
func writers(b *bench) {
	const sessions, attempts = 4, 8
	_, docs := b.registers()
	type change struct {
		version uint64
		who     seq.Session
	}
	var mu sync.Mutex // guards won and unknown
	var won []change
	unknown := 0
	var wg sync.WaitGroup
	for i := range sessions {
		who := sessiontest.Session(uint64(100 + i))
		wg.Go(func() {
			for range attempts {
				old, err := docs.LoadDocument(b.context(), who, document)
				if err != nil {
					b.Errorf("load: %v", err)
					return
				}
				done, err := docs.SwapDocument(b.context(), who, document, old.Version, []byte(who.String()))
				mu.Lock()
				switch {
				case err == nil:
					won = append(won, change{done.Version, who})
				case errors.Is(err, quorum.ErrUnknownOutcome):
					unknown++
				case !errors.Is(err, seq.ErrConflict):
					b.Errorf("swap: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(won, func(x, y change) int { return cmp.Compare(x.version, y.version) })
	for i := 1; i < len(won); i++ {
		if won[i].version == won[i-1].version {
			b.Errorf("version %d was won by %v and by %v", won[i].version, won[i-1].who, won[i].who)
		}
	}
	last, err := docs.LoadDocument(b.context(), alice, document)
	if err != nil || last.Version < uint64(len(won)) || last.Version > uint64(len(won)+unknown) {
		b.Errorf("version %d, %v, after %d changes and %d of unknown outcome", last.Version, err, len(won), unknown)
	}
	if n := len(won); n > 0 && won[n-1].version == last.Version && string(last.Body) != won[n-1].who.String() {
		b.Errorf("version %d has body %q, want that of %v", last.Version, last.Body, won[n-1].who)
	}
}
