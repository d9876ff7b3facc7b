package acceptor

import (
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// floored is a bench whose store begins with floors.
func floored(t *testing.T, f quorum.Floors) *bench {
	t.Helper()
	b := newBench(t)
	b.a.SetFloors(f)
	return b
}

// promise prepares a register, made if need be, and commits.
func (b *bench) promise(r seq.Register, round uint64, who seq.Session) quorum.Result {
	b.t.Helper()
	out, err := b.a.Prepare(quorum.PrepareRequest{Session: who, Items: []quorum.PrepareItem{{Register: r, Round: round, Create: true}}}, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.commit()
	return out[0]
}

// accept steps a register and commits.
func (b *bench) accept(r seq.Register, round uint64, who seq.Session, to uint64) quorum.Result {
	b.t.Helper()
	out, err := b.a.Step(quorum.StepRequest{Session: who, Items: []quorum.StepItem{{Register: r, Round: round, Max: to}}}, Limits{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.commit()
	return out[0]
}

func TestARegisterThatIsMadeOnDemandCountsForTheFloorOfItsKindAtLeast(t *testing.T) {
	b := floored(t, quorum.Floors{Tag: 500, Worker: 9000})
	for _, row := range []struct {
		register seq.Register
		floor    uint64
	}{{tag, 500}, {worker, 9000}} {
		look := func() quorum.Result {
			return b.a.Read(quorum.ReadRequest{Session: alice, Registers: []seq.Register{row.register}}, b.now)[0]
		}
		wants := func(when string, got quorum.Result, verdict quorum.Verdict, most uint64) {
			t.Helper()
			if got.Verdict != verdict || got.Max != most || got.Floor != row.floor {
				t.Errorf("%s %s: %v, max %d, floor %d, want %v, %d, %d", row.register, when, got.Verdict, got.Max, got.Floor, verdict, most, row.floor)
			}
		}
		wants("that there is not", look(), quorum.VerdictUnknown, row.floor)
		wants("made", b.promise(row.register, 1, alice), quorum.VerdictOK, row.floor)
		wants("promised", look(), quorum.VerdictOK, row.floor)
		wants("refused", b.promise(row.register, 0, alice), quorum.VerdictNack, row.floor)
		wants("stepped below", b.accept(row.register, 1, alice, 10), quorum.VerdictOK, row.floor)
		wants("stepped above", b.accept(row.register, 1, alice, row.floor+7), quorum.VerdictOK, row.floor+7)
		wants("asked for again", b.promise(row.register, 2, bob), quorum.VerdictOK, row.floor+7)
	}
	for _, r := range []seq.Register{section, seq.RoutesRegister, seq.ArbiterRegister} {
		if got := b.a.Read(quorum.ReadRequest{Session: alice, Registers: []seq.Register{r}}, b.now)[0]; got.Max != 0 || got.Floor != 0 {
			t.Errorf("%s: max %d, floor %d", r, got.Max, got.Floor)
		}
	}
}

func TestAFloorIsShownAndNeverStored(t *testing.T) {
	b := floored(t, quorum.Floors{Tag: 500, Worker: 9000})
	b.promise(worker, 1, alice)
	if got := b.disk[worker].Max; got != 0 {
		t.Errorf("promised: %d on disk", got)
	}
	for _, st := range b.a.Dump("", 100) {
		if st.Max != 0 {
			t.Errorf("dumped: %s at %d", st.Register, st.Max)
		}
	}
	b.accept(worker, 1, alice, 8000)
	b.a.SetFloors(quorum.Floors{Tag: 500, Worker: 100})
	if got := b.promise(worker, 2, bob).Max; got != 8000 {
		t.Errorf("under a lower floor: %d, want what was stepped, 8000", got)
	}
	fresh := seq.WorkerRegister("ids", 1, 3)
	if got := b.promise(fresh, 1, bob).Max; got != 100 {
		t.Errorf("a new one under a lower floor: %d, want 100", got)
	}
}
