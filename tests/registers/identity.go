package registers

import (
	"errors"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// identityRows are about stores and callers that do not belong together.
var identityRows = []row{
	{"callers of another cluster, era or member list are refused and change nothing", func(b *bench) {
		b.own(alice, 1, section)
		for _, bad := range []struct {
			name   string
			change func(*quorum.Ref)
			want   error
		}{
			{"another cluster", func(r *quorum.Ref) { r.Cluster += "-2" }, seq.ErrForeignCluster},
			{"no cluster", func(r *quorum.Ref) { *r = quorum.Ref{} }, seq.ErrForeignCluster},
			{"another era", func(r *quorum.Ref) { r.Era++ }, seq.ErrStaleEra},
			{"another member list", func(r *quorum.Ref) { r.Members++ }, seq.ErrStaleEra},
			{"other members", func(r *quorum.Ref) { r.MembersHash++ }, seq.ErrStaleEra},
		} {
			ref := b.Ref
			bad.change(&ref)
			for call, err := range b.callAll(ref) {
				if !errors.Is(err, bad.want) {
					b.Errorf("%s: %s: got %v, want %v", bad.name, call, err, bad.want)
				}
			}
		}
		b.wantState("after all that", section, epoch(1, alice), seq.Epoch{}, 0)
		b.wantKeptOut("the lease stands", b.prepare(bob, 2, section))
	}},
	{"a request without a session is refused", func(b *bench) {
		_, prepare := b.store.Prepare(b.context(), quorum.PrepareRequest{Ref: b.Ref, Items: []quorum.PrepareItem{{Register: section, Round: 1}}})
		_, step := b.store.Step(b.context(), quorum.StepRequest{Ref: b.Ref, Items: []quorum.StepItem{{Register: section, Round: 1, Max: 1}}})
		_, renew := b.store.Renew(b.context(), b.renewal(0, 0))
		_, release := b.store.Release(b.context(), quorum.ReleaseRequest{Ref: b.Ref, All: true})
		for call, err := range map[string]error{"prepare": prepare, "step": step, "renew": renew, "release": release} {
			if !errors.Is(err, seq.ErrBadArgument) {
				b.Errorf("%s: got %v, want %v", call, err, seq.ErrBadArgument)
			}
		}
		b.wantState("after them", section, seq.Epoch{}, seq.Epoch{}, 0)
	}},
	{"starts are counted and commits never go back", func(b *bench) {
		b.needRestart()
		before := b.renew(alice, 0)
		b.want("step", b.step(alice, 1, section, 1), quorum.VerdictOK)
		between := b.renew(alice, 0)
		if between.Commits <= before.Commits || between.BootCount != before.BootCount {
			b.Errorf("after a step: %d commits, boot %d, want more than %d, and %d", between.Commits, between.BootCount, before.Commits, before.BootCount)
		}
		b.restart()
		after := b.renew(alice, 0)
		if after.Commits < between.Commits || after.BootCount <= between.BootCount {
			b.Errorf("after a restart: %d commits, boot %d, want at least %d, and more than %d", after.Commits, after.BootCount, between.Commits, between.BootCount)
		}
	}},
	{"a claim on its disk that the store has not sealed changes nothing", func(b *bench) {
		req, reply := b.renewal(alice, 0), b.renew(alice, 0)
		lie := reply.Claim()
		lie.Commits += 1_000
		req.Seen = []quorum.Claim{reply.Claim(), lie}
		if _, err := b.store.Renew(b.context(), req); err != nil {
			b.Errorf("the renewal: %v", err)
		}
		b.want("a promise", b.prepare(alice, 1, section), quorum.VerdictOK)
	}},
	{"renewals tell the version of the routes", func(b *bench) {
		if got := b.renew(alice, 0).RouteVersion; got != 0 {
			b.Errorf("before any: got %d, want 0", got)
		}
		b.want("step", b.write(alice, 1, 41, "table"), quorum.VerdictOK)
		if got := b.renew(alice, 0).RouteVersion; got != 41 {
			b.Errorf("got %d, want 41", got)
		}
	}},
}

// callAll makes every call as bob on section 0, which would change it, and gives
// the errors by name.
func (b *bench) callAll(ref quorum.Ref) map[string]error {
	renewal := b.renewal(bob, 0)
	renewal.Ref = ref
	_, read := b.store.Read(b.context(), quorum.ReadRequest{Ref: ref, Session: bob, Registers: []seq.Register{section}})
	_, prepare := b.store.Prepare(b.context(), quorum.PrepareRequest{Ref: ref, Session: bob, Items: []quorum.PrepareItem{{Register: section, Round: 7}}})
	_, step := b.store.Step(b.context(), quorum.StepRequest{Ref: ref, Session: bob, Items: []quorum.StepItem{{Register: section, Round: 7, Max: 7}}})
	_, renew := b.store.Renew(b.context(), renewal)
	_, release := b.store.Release(b.context(), quorum.ReleaseRequest{Ref: ref, Session: alice, All: true})
	return map[string]error{"read": read, "prepare": prepare, "step": step, "renew": renew, "release": release}
}
