package registers

import (
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// ballotRows are about epochs and max.
var ballotRows = []row{
	{"a missing register is an error and never zero", func(b *bench) {
		beyond := seq.SectionRegister(seq.SectionID(b.Mapping.Sections()))
		for _, r := range []seq.Register{beyond, "dnothing", "anobody", tag} {
			b.want("read "+r.String(), b.read(alice, r), quorum.VerdictUnknown)
			b.want("prepare "+r.String(), b.prepare(alice, 1, r), quorum.VerdictUnknown)
			b.want("step "+r.String(), b.step(alice, 1, r, 1), quorum.VerdictUnknown)
		}
		got := b.prepareAll(alice, quorum.PrepareItem{Register: beyond, Round: 1, Create: true})[0]
		b.want("create a section", got, quorum.VerdictUnknown)
		b.want("a section after all that", b.read(alice, beyond), quorum.VerdictUnknown)
	}},
	{"a register on demand is made by a prepare that asks for it", func(b *bench) {
		got := b.prepareAll(alice, quorum.PrepareItem{Register: tag, Round: 3, Create: true})[0]
		b.want("create", got, quorum.VerdictOK)
		b.wantState("created", tag, epoch(3, alice), seq.Epoch{}, 0)
		b.want("step", b.step(alice, 3, tag, 50), quorum.VerdictOK)
		again := b.prepareAll(bob, quorum.PrepareItem{Register: tag, Round: 4, Create: true})[0]
		b.want("create again", again, quorum.VerdictOK)
		b.wantState("created again", tag, epoch(4, bob), epoch(3, alice), 50)
	}},
	{"a promise keeps lower epochs out", func(b *bench) {
		b.want("prepare", b.prepare(bob, 5, section), quorum.VerdictOK)
		b.want("a lower round", b.prepare(carol, 4, section), quorum.VerdictNack)
		if got := b.prepare(alice, 5, section); got.Verdict != quorum.VerdictNack || got.Promised != epoch(5, bob) {
			b.Errorf("the same round of a lower session: got %+v, want a nack with %v", got, epoch(5, bob))
		}
		b.wantState("after them", section, epoch(5, bob), seq.Epoch{}, 0)
		b.want("the same round of a higher session", b.prepare(carol, 5, section), quorum.VerdictOK)
		b.wantState("after it", section, epoch(5, carol), seq.Epoch{}, 0)
	}},
	{"a step under an older epoch is refused and changes nothing", func(b *bench) {
		b.want("step", b.step(alice, 1, section, 10_000), quorum.VerdictOK)
		b.want("prepare", b.prepare(bob, 2, section), quorum.VerdictOK)
		if got := b.step(alice, 1, section, 20_000); got.Verdict != quorum.VerdictNack || got.Promised != epoch(2, bob) {
			b.Errorf("the deposed owner's step: got %+v, want a nack with %v", got, epoch(2, bob))
		}
		b.want("the same round of a lower session", b.step(alice, 2, section, 20_000), quorum.VerdictNack)
		b.wantState("after them", section, epoch(2, bob), epoch(1, alice), 10_000)
	}},
	{"a prepare tells what was accepted before", func(b *bench) {
		b.want("step", b.step(alice, 1, section, 10_000), quorum.VerdictOK)
		got := b.prepare(bob, 2, section)
		if got.Accepted != epoch(1, alice) || got.Max != 10_000 || got.Promised != epoch(2, bob) {
			b.Errorf("got %+v, want %d accepted under %v", got, 10_000, epoch(1, alice))
		}
	}},
	{"a step under a higher epoch needs no prepare at this store", func(b *bench) {
		b.needBareSteps()
		b.want("prepare", b.prepare(alice, 1, section), quorum.VerdictOK)
		b.want("step", b.step(bob, 2, section, 500), quorum.VerdictOK)
		b.wantState("after it", section, epoch(2, bob), epoch(2, bob), 500)
		b.want("the old owner", b.step(alice, 1, section, 600), quorum.VerdictNack)
	}},
	{"a late, older step never lowers max", func(b *bench) {
		b.want("step", b.step(alice, 1, section, 20_000), quorum.VerdictOK)
		b.want("the step before it, late", b.step(alice, 1, section, 10_000), quorum.VerdictOK)
		b.wantState("after it", section, epoch(1, alice), epoch(1, alice), 20_000)
		b.want("a lower step of a new owner", b.step(bob, 2, section, 5), quorum.VerdictOK)
		b.wantState("after that", section, epoch(2, bob), epoch(2, bob), 20_000)
	}},
	{"repeats change nothing", func(b *bench) {
		for range 3 {
			b.want("prepare", b.prepare(alice, 1, section), quorum.VerdictOK)
		}
		for range 3 {
			b.want("step", b.step(alice, 1, section, 70), quorum.VerdictOK)
			b.wantState("after it", section, epoch(1, alice), epoch(1, alice), 70)
		}
		b.want("prepare after the step", b.prepare(alice, 1, section), quorum.VerdictOK)
		b.wantState("after all", section, epoch(1, alice), epoch(1, alice), 70)
	}},
	{"promise, accepted epoch and max survive a restart", func(b *bench) {
		b.needRestart()
		b.want("step", b.step(alice, 3, section, 10_000), quorum.VerdictOK)
		b.want("prepare", b.prepare(bob, 7, section), quorum.VerdictOK)
		b.restart()
		b.wantState("after the restart", section, epoch(7, bob), epoch(3, alice), 10_000)
		b.want("a lower prepare", b.prepare(carol, 6, section), quorum.VerdictNack)
		b.want("a lower step", b.step(alice, 3, section, 20_000), quorum.VerdictNack)
		b.want("the promised epoch's step", b.step(bob, 7, section, 20_000), quorum.VerdictOK)
		b.restart()
		b.wantState("after another restart", section, epoch(7, bob), epoch(7, bob), 20_000)
	}},
	{"a register on demand survives a restart", func(b *bench) {
		b.needRestart()
		b.want("create", b.prepareAll(alice, quorum.PrepareItem{Register: tag, Round: 1, Create: true})[0], quorum.VerdictOK)
		b.want("step", b.step(alice, 1, tag, 9), quorum.VerdictOK)
		b.restart()
		b.wantState("after the restart", tag, epoch(1, alice), epoch(1, alice), 9)
	}},
	{"writes that break a rule of the register are refused", func(b *bench) {
		var promised seq.Epoch
		if b.PromiseFirst {
			promised = epoch(1, alice)
		}
		b.want("max above 2^53-1", b.step(alice, 1, section, uint64(seq.MaxSeq)+1), quorum.VerdictRefused)
		withPayload := b.stepAll(alice, quorum.StepItem{Register: section, Round: 1, Max: 1, Payload: []byte("x")})[0]
		b.want("a payload on a section", withPayload, quorum.VerdictRefused)
		b.wantState("after them", section, promised, seq.Epoch{}, 0)
		b.want("max of 2^53-1", b.step(alice, 1, section, uint64(seq.MaxSeq)), quorum.VerdictOK)
	}},
	{"results come in the order of the batch, each by itself", func(b *bench) {
		b.own(alice, 5, section)
		missing := seq.SectionRegister(seq.SectionID(b.Mapping.Sections()))
		prepared := b.prepareAll(bob, quorum.PrepareItem{Register: section1, Round: 9}, quorum.PrepareItem{Register: section, Round: 9},
			quorum.PrepareItem{Register: missing, Round: 9}, quorum.PrepareItem{Register: section, Round: 4}, quorum.PrepareItem{Register: document, Round: 9})
		wantVerdicts(b.T, "prepare", prepared, quorum.VerdictOK, quorum.VerdictHeld, quorum.VerdictUnknown, quorum.VerdictNack, quorum.VerdictOK)
		stepped := b.stepAll(bob, quorum.StepItem{Register: section, Round: 4, Max: 7}, quorum.StepItem{Register: section1, Round: 9, Max: 8},
			quorum.StepItem{Register: missing, Round: 9, Max: 9}, quorum.StepItem{Register: section1, Round: 9, Max: uint64(seq.MaxSeq) + 1})
		wantVerdicts(b.T, "step", stepped, quorum.VerdictNack, quorum.VerdictOK, quorum.VerdictUnknown, quorum.VerdictRefused)
		found := b.readAll(bob, section1, missing, section, section1)
		wantVerdicts(b.T, "read", found, quorum.VerdictOK, quorum.VerdictUnknown, quorum.VerdictHeld, quorum.VerdictOK)
		if found[0].Max != 8 || found[2].Max != 0 || found[3].Max != 8 {
			b.Errorf("read: got %+v, want max 8, none, 0, 8", found)
		}
	}},
	{"a step needs the promise of exactly its epoch", func(b *bench) {
		if !b.PromiseFirst {
			b.Skip("this engine takes a step under a higher epoch as its promise")
		}
		b.want("prepare", b.prepare(alice, 2, section), quorum.VerdictOK)
		bare := b.stepAll(bob, quorum.StepItem{Register: section, Round: 3, Max: 7})[0]
		b.want("a step under a higher epoch", bare, quorum.VerdictRefused)
		b.want("a step under no epoch", b.stepAll(bob, quorum.StepItem{Register: section1, Round: 1, Max: 7})[0], quorum.VerdictRefused)
		b.wantState("after them", section, epoch(2, alice), seq.Epoch{}, 0)
	}},
	{"later items of a batch see earlier ones", func(b *bench) {
		got := b.prepareAll(bob, quorum.PrepareItem{Register: section, Round: 2}, quorum.PrepareItem{Register: section, Round: 1}, quorum.PrepareItem{Register: section, Round: 3})
		wantVerdicts(b.T, "prepare", got, quorum.VerdictOK, quorum.VerdictNack, quorum.VerdictOK)
		got = b.stepAll(bob, quorum.StepItem{Register: section, Round: 3, Max: 5}, quorum.StepItem{Register: section, Round: 2, Max: 6}, quorum.StepItem{Register: section, Round: 3, Max: 4})
		wantVerdicts(b.T, "step", got, quorum.VerdictOK, quorum.VerdictNack, quorum.VerdictOK)
		b.wantState("after it", section, epoch(3, bob), epoch(3, bob), 5)
	}},
	{"a batch may hold every register", func(b *bench) {
		all := seq.FixedRegisters()
		for id := range b.Mapping.Sections() {
			if id := seq.SectionID(id); !b.Mapping.IsExact(id) { // those have no max
				all = append(all, seq.SectionRegister(id))
			}
		}
		var prepare []quorum.PrepareItem
		var step []quorum.StepItem
		for i, r := range all {
			prepare = append(prepare, quorum.PrepareItem{Register: r, Round: uint64(i + 1)})
			step = append(step, quorum.StepItem{Register: r, Round: uint64(i + 1), Max: uint64(100 + i)})
		}
		for i, res := range b.prepareAll(alice, prepare...) {
			b.want(all[i].String(), res, quorum.VerdictOK)
		}
		for i, res := range b.stepAll(alice, step...) {
			b.want(all[i].String(), res, quorum.VerdictOK)
		}
		slices.Reverse(all)
		for i, res := range b.readAll(alice, all...) {
			if k := len(all) - i; res.Max != uint64(99+k) || res.Promised != epoch(uint64(k), alice) {
				b.Errorf("%s: got %+v, want max %d", all[i], res, 99+k)
			}
		}
	}},
	{"registers can be read by the start of their names", func(b *bench) {
		b.want("step", b.step(alice, 1, section2, 33), quorum.VerdictOK)
		reply, err := b.store.Read(b.context(), quorum.ReadRequest{Ref: b.Ref, Session: alice, Prefix: string(seq.KindSection)})
		if err != nil || len(reply.Results) != b.Mapping.Sections() {
			b.Fatalf("%d results, %v, want %d", len(reply.Results), err, b.Mapping.Sections())
		}
		for i, res := range reply.Results {
			want := uint64(0)
			if i == 2 {
				want = 33
			}
			if res.Register != seq.SectionRegister(seq.SectionID(i)) || res.Max != want {
				b.Errorf("result %d is %s with max %d, want section %d with %d", i, res.Register, res.Max, i, want)
			}
		}
	}},
}

func wantVerdicts(t *testing.T, op string, got []quorum.Result, want ...quorum.Verdict) {
	t.Helper()
	for i, w := range want {
		if got[i].Verdict != w {
			t.Errorf("%s: result %d is %s %+v, want %s", op, i, got[i].Verdict, got[i], w)
		}
	}
}
