package registers

import (
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// exactRows are about the sections of exact spaces.
var exactRows = []row{
	{"records are there after a restart, and so is their promise", func(b *bench) {
		b.needRestart()
		r := b.exactSection()
		o := b.owner(epoch(1, alice), &exact.State{})
		for _, id := range []string{"a", "b"} {
			b.want("append", b.log(r, exact.Change{Batch: b.batch(o, id)}), quorum.VerdictOK)
		}
		b.Replicas[0].Kill()
		b.Replicas[0].Restart()
		b.wantCopy("after a restart", r, epoch(1, alice), o.State())
		b.want("a lower epoch", b.prepare(bob, 0, r), quorum.VerdictNack)
	}},
	{"records are taken directly behind what is there, once", func(b *bench) {
		r := b.exactSection()
		o := b.owner(epoch(1, alice), &exact.State{})
		first, second, third := b.batch(o, "a"), b.batch(o, "b"), b.batch(o, "c")
		b.want("the third before the first", b.log(r, exact.Change{Batch: third}), quorum.VerdictElsewhere)
		b.wantCopy("after it", r, epoch(1, alice), &exact.State{})
		for _, step := range []struct {
			name  string
			batch exact.Batch
		}{{"the first", first}, {"the third, which has the second", third}, {"the second, overtaken", second}, {"the first, late", first}, {"the third again", third},
			{"none", exact.Batch{Epoch: third.Epoch, After: third.End()}}} {
			b.want(step.name, b.log(r, exact.Change{Batch: step.batch}), quorum.VerdictOK)
		}
		b.wantCopy("after them", r, epoch(1, alice), o.State())
	}},
	{"records under an older epoch are refused, and those of a newer one promise it", func(b *bench) {
		r := b.exactSection()
		o := b.owner(epoch(1, alice), &exact.State{})
		first := b.batch(o, "a")
		b.want("prepare", b.prepare(bob, 2, r), quorum.VerdictOK)
		b.want("the older owner", b.log(r, exact.Change{Batch: first}), quorum.VerdictNack)
		b.want("its whole copy", b.log(r, exact.Change{Whole: o.State()}), quorum.VerdictNack)
		b.wantCopy("after them", r, epoch(2, bob), &exact.State{})
		next := b.owner(epoch(3, alice), &exact.State{})
		b.want("a newer owner", b.log(r, exact.Change{Batch: b.batch(next, "c")}), quorum.VerdictOK)
		b.wantCopy("after it", r, epoch(3, alice), next.State())
		b.want("prepare below", b.prepare(bob, 2, r), quorum.VerdictNack)
	}},
	{"a whole copy takes the place of another, and never puts back one of its own epoch", func(b *bench) {
		r := b.exactSection()
		old := b.owner(epoch(1, bob), &exact.State{})
		b.want("another's records", b.log(r, exact.Change{Batch: b.batch(old, "x")}), quorum.VerdictOK)
		o := b.owner(epoch(2, alice), &exact.State{})
		b.batch(o, "a")
		early := o.State()
		later := b.batch(o, "b")
		b.want("fill", b.log(r, exact.Change{Whole: early}), quorum.VerdictOK)
		b.wantCopy("after it", r, epoch(2, alice), early)
		b.want("append", b.log(r, exact.Change{Batch: later}), quorum.VerdictOK)
		b.want("the same fill, late", b.log(r, exact.Change{Whole: early}), quorum.VerdictOK)
		b.wantCopy("after that", r, epoch(2, alice), o.State())
	}},
	{"what is no change of an exact section is refused", func(b *bench) {
		r := b.exactSection()
		o := b.owner(epoch(1, alice), &exact.State{})
		change := exact.Change{Batch: b.batch(o, "a")}
		b.want("prepare", b.prepare(alice, 1, section), quorum.VerdictOK)
		for name, it := range map[string]quorum.StepItem{
			"a max":                 {Register: r, Round: 1, Max: 5},
			"a max with records":    {Register: r, Round: 1, Max: 5, Log: change.AppendTo(nil)},
			"half a change":         {Register: r, Round: 1, Log: change.AppendTo(nil)[:4]},
			"another epoch":         {Register: r, Round: 2, Log: change.AppendTo(nil)},
			"an ordinary section's": {Register: section, Round: 1, Log: change.AppendTo(nil)},
		} {
			b.want(name, b.stepAll(alice, it)[0], quorum.VerdictRefused)
		}
		b.want("the copy of an ordinary section", b.copies(section)[0], quorum.VerdictRefused)
		b.want("of one that there is not", b.copies(seq.SectionRegister(seq.SectionID(b.Mapping.Sections())))[0], quorum.VerdictUnknown)
		if got := b.copies(r)[0]; got.Index != 0 || got.Max != 0 {
			b.Errorf("after them: got %+v, want nothing", got)
		}
	}},
}

// exactSection is one of the mapping; the row is skipped if the engine has none.
func (b *bench) exactSection() seq.Register {
	b.Helper()
	for i := range b.Mapping.Spaces {
		if s := &b.Mapping.Spaces[i]; s.Mode == seq.Exact {
			return seq.SectionRegister(s.First)
		}
	}
	b.Skip("this engine has no exact space")
	return ""
}

func (b *bench) owner(e seq.Epoch, found *exact.State) *exact.Owner {
	b.Helper()
	o, err := exact.NewOwner(exact.Config{Window: seq.DefaultWindow.Milliseconds()}, e, found, time.Now().UnixMilli())
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// batch is an owner's next, with a number for an id.
func (b *bench) batch(o *exact.Owner, id string) exact.Batch {
	b.Helper()
	now := time.Now().UnixMilli()
	if _, err := o.Take(7, 1, id, now, now); err != nil {
		b.Fatal(err)
	}
	out, _ := o.Begin()
	o.Committed()
	return out
}

// log sends a change under its own epoch.
func (b *bench) log(r seq.Register, c exact.Change) quorum.Result {
	b.Helper()
	e := c.Epoch()
	return b.stepAll(e.Session, quorum.StepItem{Register: r, Round: e.Round, Log: c.AppendTo(nil)})[0]
}

func (b *bench) copies(registers ...seq.Register) []quorum.Result {
	b.Helper()
	reply, err := b.store.Read(b.context(), quorum.ReadRequest{Ref: b.Ref, Session: alice, Registers: registers, Copies: true})
	if err != nil {
		b.Fatal(err)
	}
	return reply.Results
}

// wantCopy checks a section's copy and promise.
func (b *bench) wantCopy(what string, r seq.Register, promised seq.Epoch, want *exact.State) {
	b.Helper()
	got := b.copies(r)[0]
	s, err := exact.ReadState(got.Payload, seq.DefaultWindow.Milliseconds())
	if err != nil || got.Verdict != quorum.VerdictOK || got.Promised != promised || got.Accepted != want.At().Epoch || got.Index != want.At().Index ||
		s.Describe() != want.Describe() {
		b.Errorf("%s: got %v, %v, promised %v, at %d of %v, %s; want promised %v, %s", what, err, got.Verdict, got.Promised, got.Index, got.Accepted, s.Describe(), promised, want.Describe())
	}
}
