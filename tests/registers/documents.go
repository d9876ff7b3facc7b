package registers

import (
	"github.com/seqsvr/seqsvr/quorum"
)

// documentRows are about registers with a payload, as one store sees them.
var documentRows = []row{
	{"a document's payload goes with its accepted epoch", func(b *bench) {
		b.want("prepare", b.prepare(alice, 1, document), quorum.VerdictOK)
		b.want("step", b.write(alice, 1, 1, "one"), quorum.VerdictOK)
		got := b.prepare(bob, 2, document)
		if string(got.Payload) != "one" || got.Accepted != epoch(1, alice) || got.Max != 1 {
			b.Errorf("prepare: got %+v, want %q of %v", got, "one", epoch(1, alice))
		}
		b.want("the deposed writer", b.write(alice, 1, 2, "two"), quorum.VerdictNack)
		b.wantPayload("after it", "one")
		b.want("the new writer", b.write(bob, 2, 2, "zwei"), quorum.VerdictOK)
		b.wantPayload("after that", "zwei")
	}},
	{"a late, older step under one epoch does not take a newer payload back", func(b *bench) {
		b.want("step", b.write(alice, 1, 2, "two"), quorum.VerdictOK)
		b.want("the step before it, late", b.write(alice, 1, 1, "one"), quorum.VerdictOK)
		b.wantPayload("after it", "two")
		b.wantState("after it", document, epoch(1, alice), epoch(1, alice), 2)
	}},
	{"a payload survives a restart", func(b *bench) {
		b.needRestart()
		b.want("step", b.write(alice, 4, 9, "nine"), quorum.VerdictOK)
		b.restart()
		b.wantPayload("after the restart", "nine")
		b.want("the step before it, late", b.write(alice, 4, 8, "eight"), quorum.VerdictOK)
		b.wantPayload("after that", "nine")
		b.wantState("after that", document, epoch(4, alice), epoch(4, alice), 9)
	}},
	{"a payload may be replaced by none and by a large one", func(b *bench) {
		large := string(make([]byte, 1<<20))
		b.want("large", b.write(alice, 1, 1, large), quorum.VerdictOK)
		b.wantPayload("large", large)
		b.want("none", b.write(alice, 1, 2, ""), quorum.VerdictOK)
		b.wantPayload("none", "")
	}},
	{"documents know no lease and no grace", func(b *bench) {
		b.own(alice, 1, section) // so that a grace follows
		b.want("prepare", b.prepare(alice, 1, document), quorum.VerdictOK)
		if got := b.renew(alice, 1, item(document, 1)); len(got.Refused) != 1 {
			b.Errorf("lease of a document: got %+v, want it refused", got)
		}
		b.want("another writer", b.prepare(bob, 2, document), quorum.VerdictOK)
		b.needRestart()
		b.restart()
		b.want("another writer in the grace", b.prepare(carol, 3, document), quorum.VerdictOK)
	}},
}

func (b *bench) wantPayload(what, want string) {
	b.Helper()
	if got := b.read(alice, document); string(got.Payload) != want {
		b.Fatalf("%s: %s has %.40q, want %.40q", what, document, got.Payload, want)
	}
}
