package acceptor

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	alice seq.Session = 0xa
	bob   seq.Session = 0xb
	carol seq.Session = 0xc

	lease = time.Second
)

var (
	section  = seq.SectionRegister(0)
	section1 = seq.SectionRegister(1)
	tag      = seq.TagRegister("order")
	worker   = seq.WorkerRegister("ids", 1, 2)
)

// bench is an Acceptor with a clock and a disk that never fails.
type bench struct {
	t    *testing.T
	a    *Acceptor
	now  time.Duration
	disk map[seq.Register]State
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Hour, disk: map[seq.Register]State{section: {}, section1: {}}}
	for _, r := range seq.FixedRegisters() {
		b.disk[r] = State{}
	}
	b.restart(0)
	b.a.SetLeaseBound(10 * lease)
	return b
}

func (b *bench) restart(bound time.Duration) {
	b.t.Helper()
	a, err := New(Config{Registers: maps.Clone(b.disk), MaxLease: 10 * lease, LeaseBound: bound, Start: b.now})
	if err != nil {
		b.t.Fatal(err)
	}
	b.a = a
}

func (b *bench) commit() {
	for _, c := range b.a.Changes() {
		b.disk[c.Register] = c.State
	}
	b.a.Committed()
}

func (b *bench) propose(r seq.Register, round uint64, who seq.Session) quorum.Result {
	b.t.Helper()
	res, err := b.a.Prepare(quorum.PrepareRequest{Session: who, Items: []quorum.PrepareItem{{Register: r, Round: round, Create: true}}}, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return res[0]
}

func (b *bench) prepare(r seq.Register, round uint64, who seq.Session) quorum.Result {
	b.t.Helper()
	res := b.propose(r, round, who)
	b.commit()
	return res
}

func (b *bench) stepItem(item quorum.StepItem, who seq.Session) quorum.Result {
	b.t.Helper()
	res, err := b.a.Step(quorum.StepRequest{Session: who, Items: []quorum.StepItem{item}}, Limits{WorkerMax: 1000})
	if err != nil {
		b.t.Fatal(err)
	}
	b.commit()
	return res[0]
}

func (b *bench) step(r seq.Register, round uint64, who seq.Session, to uint64) quorum.Result {
	b.t.Helper()
	return b.stepItem(quorum.StepItem{Register: r, Round: round, Max: to}, who)
}

func (b *bench) read(r seq.Register, who seq.Session) quorum.Result {
	return b.a.Read(quorum.ReadRequest{Session: who, Registers: []seq.Register{r}}, b.now)[0]
}

func (b *bench) renew(who seq.Session, attached uint64, attach ...quorum.LeaseItem) quorum.RenewReply {
	b.t.Helper()
	reply, err := b.a.Renew(quorum.RenewRequest{Session: who, Name: who.String(), Lease: lease, Attach: attach, Attached: attached}, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply
}

func (b *bench) release(req quorum.ReleaseRequest) int {
	b.t.Helper()
	n, err := b.a.Release(req, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) want(what string, got quorum.Result, want quorum.Verdict) {
	b.t.Helper()
	if got.Verdict != want {
		b.t.Errorf("%s: got %v, want %v (%+v)", what, got.Verdict, want, got)
	}
}

func item(r seq.Register, round uint64) quorum.LeaseItem {
	return quorum.LeaseItem{Register: r, Round: round}
}

func TestAPrepareIsRefusedBelowThePromiseAndRepeatableAtIt(t *testing.T) {
	b := newBench(t)
	b.want("first", b.prepare(section, 5, alice), quorum.VerdictOK)
	b.want("again", b.prepare(section, 5, alice), quorum.VerdictOK)
	b.want("lower round", b.prepare(section, 4, bob), quorum.VerdictNack)
	b.want("same round, higher session", b.prepare(section, 5, bob), quorum.VerdictOK)
	got := b.prepare(section, 5, alice)
	b.want("same round, lower session", got, quorum.VerdictNack)
	if want := (seq.Epoch{Round: 5, Session: bob}); got.Promised != want {
		t.Errorf("the refusal tells %v, want %v", got.Promised, want)
	}
}

func TestAMissingRegisterIsNeverZero(t *testing.T) {
	b := newBench(t)
	missing := seq.SectionRegister(9)
	b.want("prepare of a section", b.prepare(missing, 1, alice), quorum.VerdictUnknown)
	b.want("step of a section", b.step(missing, 1, alice, 5), quorum.VerdictUnknown)
	b.want("read of a section", b.read(missing, alice), quorum.VerdictUnknown)
	b.want("step of a tag", b.step(tag, 1, alice, 5), quorum.VerdictUnknown)
	res, _ := b.a.Prepare(quorum.PrepareRequest{Session: alice, Items: []quorum.PrepareItem{{Register: tag, Round: 1}}}, b.now)
	b.want("prepare of a tag that may not be made", res[0], quorum.VerdictUnknown)
	b.want("prepare of a tag that may be made", b.prepare(tag, 1, alice), quorum.VerdictOK)
	b.want("step of it", b.step(tag, 1, alice, 5), quorum.VerdictOK)
	b.want("a name that is too short", b.prepare("t", 1, alice), quorum.VerdictRefused)
}

func TestAStepUnderAnOlderEpochIsRefused(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.want("own epoch", b.step(section, 1, alice, 100), quorum.VerdictOK)
	b.prepare(section, 2, bob)
	got := b.step(section, 1, alice, 200)
	b.want("after a higher promise", got, quorum.VerdictNack)
	if got.Max != 100 {
		t.Errorf("max is %d, want 100", got.Max)
	}
}

func TestAStepWithoutAPromiseIsAPromise(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.want("step of one who has the promises of others", b.step(section, 2, bob, 50), quorum.VerdictOK)
	b.want("step of the one before", b.step(section, 1, alice, 60), quorum.VerdictNack)
	want := State{Promised: seq.Epoch{Round: 2, Session: bob}, Accepted: seq.Epoch{Round: 2, Session: bob}, Max: 50}
	if diff := cmp.Diff(want, b.disk[section]); diff != "" {
		t.Error(diff)
	}
	if got := b.renew(alice, 1).Lost; !cmp.Equal(got, []quorum.LeaseItem{item(section, 1)}) {
		t.Errorf("lost is %v, want the section", got)
	}
}

func TestALateOlderStepNeverLowersMax(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.step(section, 1, alice, 200)
	got := b.step(section, 1, alice, 100)
	b.want("late step", got, quorum.VerdictOK)
	if got.Max != 200 || b.disk[section].Max != 200 {
		t.Errorf("max is %d, on disk %d, want 200", got.Max, b.disk[section].Max)
	}
	if got := b.prepare(section, 2, bob); got.Max != 200 || got.Accepted != (seq.Epoch{Round: 1, Session: alice}) {
		t.Errorf("the promise tells max %d of %v", got.Max, got.Accepted)
	}
}

func TestWritesThatBreakARuleOfTheRegisterAreRefused(t *testing.T) {
	doc := seq.RoutesRegister
	rows := []struct {
		name string
		item quorum.StepItem
		want quorum.Verdict
	}{
		{"the last sequence", quorum.StepItem{Register: section, Max: uint64(seq.MaxSeq)}, quorum.VerdictOK},
		{"beyond the last sequence", quorum.StepItem{Register: section1, Max: uint64(seq.MaxSeq) + 1}, quorum.VerdictRefused},
		{"a payload in a section", quorum.StepItem{Register: section1, Payload: []byte("x")}, quorum.VerdictRefused},
		{"the largest payload", quorum.StepItem{Register: doc, Payload: make([]byte, MaxPayload)}, quorum.VerdictOK},
		{"a larger payload", quorum.StepItem{Register: doc, Payload: make([]byte, MaxPayload+1)}, quorum.VerdictRefused},
		{"a worker's mark at the limit", quorum.StepItem{Register: worker, Max: 1000}, quorum.VerdictOK},
		{"a worker's mark beyond it", quorum.StepItem{Register: worker, Max: 1001}, quorum.VerdictRefused},
	}
	for _, row := range rows {
		b := newBench(t)
		b.prepare(row.item.Register, 1, alice)
		before := b.disk[row.item.Register]
		row.item.Round = 1
		got := b.stepItem(row.item, alice)
		b.want(row.name, got, row.want)
		if row.want != quorum.VerdictRefused {
			continue
		}
		if got.Message == "" {
			t.Errorf("%s: refused without a reason", row.name)
		}
		if diff := cmp.Diff(before, b.disk[row.item.Register]); diff != "" {
			t.Errorf("%s: a refused write changed the register: %s", row.name, diff)
		}
	}
}

func TestADocumentTakesThePayloadOfTheLatestProposal(t *testing.T) {
	b := newBench(t)
	doc := seq.RoutesRegister
	put := func(round uint64, who seq.Session, version uint64, text string) {
		t.Helper()
		b.want(text, b.stepItem(quorum.StepItem{Register: doc, Round: round, Max: version, Payload: []byte(text)}, who), quorum.VerdictOK)
	}
	rows := []struct {
		round   uint64
		who     seq.Session
		version uint64
		text    string
		want    string
		max     uint64
	}{
		{1, alice, 6, "alice's 6", "alice's 6", 6},
		{1, alice, 7, "alice's 7", "alice's 7", 7},
		{1, alice, 6, "alice's 6", "alice's 7", 7}, // late
		{1, alice, 7, "alice's 7", "alice's 7", 7}, // repeated
		{2, bob, 5, "bob's 5", "bob's 5", 7},       // a higher epoch that never saw 6 and 7
		{2, bob, 6, "bob's 6", "bob's 6", 7},
	}
	b.prepare(doc, 1, alice)
	for _, row := range rows {
		put(row.round, row.who, row.version, row.text)
		got := b.read(doc, carol)
		if string(got.Payload) != row.want || got.Max != row.max {
			t.Errorf("after %s: got %q and max %d, want %q and %d", row.text, got.Payload, got.Max, row.want, row.max)
		}
	}
	b.want("documents know no lease", b.prepare(doc, 9, carol), quorum.VerdictOK)
}

func TestRequestsOfOneGroupSeeEachOther(t *testing.T) {
	b := newBench(t)
	b.want("bob", b.propose(section, 2, bob), quorum.VerdictOK)
	b.want("alice in the same group", b.propose(section, 1, alice), quorum.VerdictNack)
	b.want("carol in the same group", b.propose(section, 3, carol), quorum.VerdictOK)
	want := []Change{{Register: section, State: State{Promised: seq.Epoch{Round: 3, Session: carol}}}}
	if diff := cmp.Diff(want, b.a.Changes()); diff != "" {
		t.Error(diff)
	}
	b.commit()
	if got := b.a.Changes(); len(got) != 0 {
		t.Errorf("%d changes left after the commit", len(got))
	}
}

func TestReadsShowOnlyWhatIsOnDisk(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.propose(section, 2, bob)
	b.propose(tag, 1, bob)
	if got, want := b.read(section, carol).Promised, (seq.Epoch{Round: 1, Session: alice}); got != want {
		t.Errorf("promised is %v before the commit, want %v", got, want)
	}
	b.want("a tag not yet on disk", b.read(tag, carol), quorum.VerdictUnknown)
	if got := b.a.Read(quorum.ReadRequest{Prefix: "t"}, b.now); len(got) != 0 {
		t.Errorf("a read by prefix shows %d tags, want none", len(got))
	}
	b.commit()
	if got, want := b.read(section, carol).Promised, (seq.Epoch{Round: 2, Session: bob}); got != want {
		t.Errorf("promised is %v after the commit, want %v", got, want)
	}
	b.want("the tag on disk", b.read(tag, carol), quorum.VerdictOK)
}

func TestAReadByPrefixNamesTheRegistersInOrder(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"b", "a", "c"} {
		b.prepare(seq.TagRegister(name), 1, alice)
	}
	names := func(prefix string) (out []seq.Register) {
		for _, res := range b.a.Read(quorum.ReadRequest{Prefix: prefix}, b.now) {
			out = append(out, res.Register)
		}
		return out
	}
	if diff := cmp.Diff([]seq.Register{"ta", "tb", "tc"}, names("t")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]seq.Register{section, section1}, names("s")); diff != "" {
		t.Error(diff)
	}
	if got := names("x"); len(got) != 0 {
		t.Errorf("got %q for a prefix that nothing has", got)
	}
}

func TestSessionZeroIsRefused(t *testing.T) {
	b := newBench(t)
	_, prepare := b.a.Prepare(quorum.PrepareRequest{}, b.now)
	_, step := b.a.Step(quorum.StepRequest{}, Limits{})
	_, renew := b.a.Renew(quorum.RenewRequest{Name: "x", Lease: lease}, b.now)
	_, release := b.a.Release(quorum.ReleaseRequest{}, b.now)
	for what, err := range map[string]error{"prepare": prepare, "step": step, "renew": renew, "release": release} {
		if !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want ErrBadArgument", what, err)
		}
	}
}

func TestABrokenInvariantIsAFatalError(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 3, alice)
	b.step(section, 3, alice, 100)
	high, low := seq.Epoch{Round: 4, Session: alice}, seq.Epoch{Round: 2, Session: alice}
	before := b.a.registers.find(section).state()
	for name, next := range map[string]State{
		"I1 promised decreases":      {Promised: low, Accepted: low, Max: 100},
		"I2 max decreases":           {Promised: high, Accepted: high, Max: 99},
		"I3 accepted above promised": {Promised: before.Promised, Accepted: high, Max: 100},
	} {
		if err := b.a.set(section, b.a.registers.find(section), next); !errors.Is(err, ErrInvariant) {
			t.Errorf("%s: got %v, want ErrInvariant", name, err)
		}
	}
	if diff := cmp.Diff(before, b.a.registers.find(section).state()); diff != "" {
		t.Error(diff)
	}
	if _, err := New(Config{Registers: map[seq.Register]State{section: {Accepted: high}}}); !errors.Is(err, ErrInvariant) {
		t.Errorf("load: got %v, want ErrInvariant", err)
	}
}
