package registers

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// The sessions of the rows, in the order in which their epochs compare.
var alice, bob, carol = inOrder(sessiontest.Session(0xa), sessiontest.Session(0xb), sessiontest.Session(0xc))

func inOrder(s ...seq.Session) (first, second, third seq.Session) {
	slices.Sort(s)
	return s[0], s[1], s[2]
}

const (
	patience = 30 * time.Second // far more than any call takes
	lease    = time.Second
)

// The registers that most rows are about.
var (
	section  = seq.SectionRegister(0)
	section1 = seq.SectionRegister(1)
	section2 = seq.SectionRegister(2)
	document = seq.RoutesRegister
	tag      = seq.TagRegister("orders")
)

// bench is the cluster of one row, with short forms of the calls to its first store.
// They end the row when the store answers with an error.
type bench struct {
	*testing.T
	Harness
	store quorum.Store
}

func (b *bench) context() context.Context {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	b.Cleanup(cancel)
	return ctx
}

func epoch(round uint64, who seq.Session) seq.Epoch { return seq.Epoch{Round: round, Session: who} }

func item(r seq.Register, round uint64) quorum.LeaseItem {
	return quorum.LeaseItem{Register: r, Round: round}
}

// results checks a reply and gives its results.
func (b *bench) results(op string, reply quorum.Reply, err error, want int) []quorum.Result {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", op, err)
	}
	if reply.UUID != b.Replicas[0].UUID || len(reply.Results) != want {
		b.Fatalf("%s: %d results of store %q, want %d of %q", op, len(reply.Results), reply.UUID, want, b.Replicas[0].UUID)
	}
	for i, res := range reply.Results {
		if res.Promised.Less(res.Accepted) {
			b.Errorf("%s: result %d: accepted %v above promised %v", op, i, res.Accepted, res.Promised)
		}
	}
	return reply.Results
}

func (b *bench) readAll(who seq.Session, regs ...seq.Register) []quorum.Result {
	b.Helper()
	reply, err := b.store.Read(b.context(), quorum.ReadRequest{Ref: b.Ref, Session: who, Registers: regs})
	return b.results("read", reply, err, len(regs))
}

func (b *bench) prepareAll(who seq.Session, items ...quorum.PrepareItem) []quorum.Result {
	b.Helper()
	reply, err := b.store.Prepare(b.context(), quorum.PrepareRequest{Ref: b.Ref, Session: who, Items: items})
	return b.results("prepare", reply, err, len(items))
}

func (b *bench) stepAll(who seq.Session, items ...quorum.StepItem) []quorum.Result {
	b.Helper()
	reply, err := b.store.Step(b.context(), quorum.StepRequest{Ref: b.Ref, Session: who, Items: items})
	return b.results("step", reply, err, len(items))
}

func (b *bench) read(who seq.Session, r seq.Register) quorum.Result {
	b.Helper()
	return b.readAll(who, r)[0]
}

func (b *bench) prepare(who seq.Session, round uint64, r seq.Register) quorum.Result {
	b.Helper()
	return b.prepareAll(who, quorum.PrepareItem{Register: r, Round: round})[0]
}

func (b *bench) step(who seq.Session, round uint64, r seq.Register, to uint64) quorum.Result {
	b.Helper()
	b.promiseFirst(who, round, r)
	return b.stepAll(who, quorum.StepItem{Register: r, Round: round, Max: to})[0]
}

func (b *bench) write(who seq.Session, round, version uint64, body string) quorum.Result {
	b.Helper()
	b.promiseFirst(who, round, document)
	return b.stepAll(who, quorum.StepItem{Register: document, Round: round, Max: version, Payload: []byte(body)})[0]
}

// promiseFirst asks for the promise that a step of this engine needs. Whether it is given is the
// step's to find out.
func (b *bench) promiseFirst(who seq.Session, round uint64, r seq.Register) {
	b.Helper()
	if b.PromiseFirst {
		b.prepare(who, round, r)
	}
}

// renewal is a request under the session's own name.
func (b *bench) renewal(who seq.Session, attached int, attach ...quorum.LeaseItem) quorum.RenewRequest {
	return quorum.RenewRequest{Ref: b.Ref, Session: who, Name: who.String(), Addr: "127.0.0.1:1", Lease: lease,
		Attach: attach, Attached: uint64(attached)}
}

func (b *bench) renewWith(req quorum.RenewRequest) quorum.RenewReply {
	b.Helper()
	reply, err := b.store.Renew(b.context(), req)
	if err != nil {
		b.Fatalf("renew: %v", err)
	}
	if reply.UUID != b.Replicas[0].UUID {
		b.Fatalf("renew: answered by store %q, want %q", reply.UUID, b.Replicas[0].UUID)
	}
	return reply
}

// renew extends the lease of a session that believes in so many attachments.
func (b *bench) renew(who seq.Session, attached int, attach ...quorum.LeaseItem) quorum.RenewReply {
	b.Helper()
	return b.renewWith(b.renewal(who, attached, attach...))
}

func (b *bench) release(who, to seq.Session, items ...quorum.LeaseItem) {
	b.Helper()
	b.releaseWith(quorum.ReleaseRequest{Ref: b.Ref, Session: who, Items: items, To: to})
}

func (b *bench) releaseWith(req quorum.ReleaseRequest) {
	b.Helper()
	uuid, err := b.store.Release(b.context(), req)
	if err != nil || uuid != b.Replicas[0].UUID {
		b.Fatalf("release: store %q, %v, want %q", uuid, err, b.Replicas[0].UUID)
	}
}

// own takes the registers under a round and leases them.
func (b *bench) own(who seq.Session, round uint64, regs ...seq.Register) {
	b.Helper()
	var items []quorum.LeaseItem
	for _, r := range regs {
		b.want("take", b.prepare(who, round, r), quorum.VerdictOK)
		items = append(items, item(r, round))
	}
	if reply := b.renew(who, len(regs), items...); len(reply.Refused) > 0 || reply.Reset {
		b.Fatalf("lease: refused %v, reset %v", reply.Refused, reply.Reset)
	}
}

// restart is a crash and a new start of the first store.
func (b *bench) restart() {
	b.Helper()
	b.Replicas[0].Kill()
	b.Replicas[0].Restart()
}

func (b *bench) want(what string, got quorum.Result, want quorum.Verdict) {
	b.Helper()
	if got.Verdict != want {
		b.Fatalf("%s: got %s %+v, want %s", what, got.Verdict, got, want)
	}
}

// wantKeptOut gives how long it will be kept out, which must be above 0. Whether by a
// lease or by the grace is the engine's choice where leases may outlive a restart.
func (b *bench) wantKeptOut(what string, got quorum.Result) time.Duration {
	b.Helper()
	if got.Verdict != quorum.VerdictHeld && got.Verdict != quorum.VerdictGrace || got.Remaining <= 0 {
		b.Fatalf("%s: got %s %+v, want it kept out for some time", what, got.Verdict, got)
	}
	return got.Remaining
}

// wantState checks what a store has of a register.
func (b *bench) wantState(what string, r seq.Register, promised, accepted seq.Epoch, max uint64) {
	b.Helper()
	got := b.read(alice, r)
	if got.Promised != promised || got.Accepted != accepted || got.Max != max {
		b.Fatalf("%s: %s has promised %v, accepted %v, max %d, want %v, %v, %d",
			what, r, got.Promised, got.Accepted, got.Max, promised, accepted, max)
	}
}
