package storeclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Require raises the protocol that the store requires of sessions, durably, and returns its
// identity after that. With check nothing is changed; decided says that another store requires
// it already. Errors: seq.ErrForeignCluster, seq.ErrStaleEra, seq.ErrProtocol while the store
// or a live session is older, seq.ErrOverloaded in its grace, seq.ErrStoreFull. Safe to repeat.
func (c *Client) Require(ctx context.Context, cluster string, era seq.Era, protocol int, check, decided bool) error {
	reply, err := c.calls().Require(c.meant(ctx), &pb.RequireRequest{ClusterId: cluster, Era: uint64(era), Protocol: uint32(protocol), Check: check, Decided: decided})
	_, err = c.identity("require a protocol", reply, err)
	return err
}

// required returns the highest protocol that one of the stores requires.
func required(there []*candidate) (protocol int) {
	for _, s := range there {
		protocol = max(protocol, s.id.Required)
	}
	return protocol
}

// require tells the highest required protocol to the stores that answered with a lower one.
// Stores of a build of before are left alone.
func require(ctx context.Context, stores []*candidate) {
	there := answered(stores)
	want := required(there)
	each(ctx, there, func(ctx context.Context, s *candidate) {
		if s.id.Required < want && want <= s.id.Protocol {
			if s.client.Require(ctx, s.id.Ref.Cluster, s.id.Ref.Era, want, false, true) == nil {
				s.id.Required = want
			}
		}
	})
}

// fit returns seq.ErrProtocol if the stores require a protocol that this build does not speak.
func fit(stores []*candidate) error {
	if want := required(answered(stores)); want > version.Protocol {
		return fmt.Errorf("%w: this build speaks %d, the cluster requires %d: start a newer build", seq.ErrProtocol, version.Protocol, want)
	}
	return nil
}

// Require has W stores require the protocol of sessions, durably: from then on no older build
// gets a lease. It changes nothing while a store that answers, or a live session, is older:
// seq.ErrProtocol, with its name. If too few stores take it before ctx ends, the error says which.
func (f *Follower) Require(ctx context.Context, protocol int) error {
	for {
		asked := make([]*candidate, 0, len(f.Stores()))
		for _, s := range f.Stores() {
			asked = append(asked, &candidate{client: s.Client, member: true})
		}
		describe(ctx, asked)
		done, err := f.raise(ctx, asked, protocol)
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("require protocol %d: %w", protocol, shortfall(asked))
		case <-time.After(retryPause):
		}
	}
}

// raise is one try of Require.
func (f *Follower) raise(ctx context.Context, asked []*candidate, protocol int) (done bool, err error) {
	own, need, have := f.cluster.Identity.Ref, f.List().W, 0
	for _, s := range answered(asked) {
		if least := max(protocol, version.Gate); s.id.Protocol < least {
			own := max(s.id.Protocol, version.Gate-1) // a store of before does not say
			return false, fmt.Errorf("%w: store %s at %s speaks %d, expected %d: upgrade the store first", seq.ErrProtocol, s.id.Name, s.client.Addr(), own, least)
		}
		if s.id.Required >= protocol {
			have++
		}
	}
	if have >= need {
		return true, nil
	}
	for _, check := range []bool{true, false} { // an older session is found before any store has changed
		each(ctx, answered(asked), func(ctx context.Context, s *candidate) {
			s.err = s.client.Require(ctx, own.Cluster, own.Era, protocol, check, false)
		})
		for _, s := range asked {
			if errors.Is(s.err, seq.ErrProtocol) {
				return false, s.err
			}
		}
		if len(answered(asked)) < need {
			return false, nil
		}
	}
	return true, nil
}
