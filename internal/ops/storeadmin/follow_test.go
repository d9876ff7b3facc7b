package storeadmin_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestAWriterThatFollowsTheListGoesThroughAReplacementWithoutAnUnknownOutcome(t *testing.T) {
	s := founders(t, 3)
	cluster := connect(t, s...)
	id := cluster.Identity
	var g *quorum.Group
	follower := storeclient.NewFollower(cluster, slog.New(slog.DiscardHandler), func(list quorum.MemberList, stores []quorum.NamedStore) error {
		return g.Reconfigure(quorum.Config{Ref: list.Ref("c1", id.Ref.Era), N: list.N(), R: list.R, W: list.W}, stores)
	}, dialer)
	g, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, OnStale: follower.Kick, Secret: sessiontest.SecretOf(alice)}, storeclient.NamedStores(cluster.Stores))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait(); g.Close(); follower.Close() }()
	wg.Go(func() { _ = follower.Run(ctx) })

	reg := seq.SectionRegister(5)
	if out := g.Prepare(ctx, alice, []quorum.PrepareItem{{Register: reg, Round: 1}})[0]; out.State != quorum.Won {
		t.Fatal(out.Err)
	}
	s[1].stop()
	fresh := learner(t, "n")
	c := open(t, s...)
	steps, err := c.Replace(ctx, "b", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan error, 1)
	wg.Go(func() { changed <- storeadmin.Run(ctx, steps, nil) })
	last := uint64(0)
	for done := false; !done; {
		select {
		case err := <-changed:
			done = true
			if err != nil {
				t.Fatal(err)
			}
		default:
		}
		last++
		if out := g.Step(ctx, alice, []quorum.StepItem{{Register: reg, Round: 1, Max: last}})[0]; out.State != quorum.Won {
			t.Fatalf("step to %d: %v", last, out.Err)
		}
	}
	if got := g.Config(); got.Ref.Members != 3 || got.N != 3 {
		t.Errorf("the group goes by %+v", got)
	}
	s[0].stop()
	wantBases(t, map[seq.Register]uint64{reg: last}, group(t, s[2], fresh))
}
