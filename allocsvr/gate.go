package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// requireEvery is the time between two tries to have the stores require what is used already.
const requireEvery = 5 * time.Second

// needs has the stores require the first protocol of a feature before it is used. Errors:
// seq.ErrProtocol while a live node or a store is older, with its name.
func (n *Node) needs(ctx context.Context, feature string, protocol int) error {
	if n.require == nil {
		return nil
	}
	if err := n.require(ctx, protocol); err != nil {
		return fmt.Errorf("%s need protocol %d at all nodes: %w", feature, protocol, err)
	}
	return nil
}

// decideSpace decides that the cluster has a space.
func (n *Node) decideSpace(ctx context.Context, have seq.Mapping, s seq.Space) (seq.Mapping, error) {
	if feature, protocol := version.OfMapping(seq.Mapping{Spaces: []seq.Space{s}}); protocol > 0 {
		if err := n.needs(ctx, feature, protocol); err != nil {
			return seq.Mapping{}, err
		}
	}
	return documents.NewSpaces(context.Background(), n.group, n.alloc.session).Add(ctx, have, s)
}

// used returns the protocol of the features that the cluster uses, as far as this node knows.
func (n *Node) used() (feature string, protocol int) {
	record := n.alloc.sets.Known()
	feature, protocol = version.OfMapping(*n.alloc.sections.Mapping())
	if protocol < version.Sets && (!record.IsRoot() || record.Name != "") {
		return "Sets", version.Sets
	}
	return feature, protocol
}

// requireUsed makes the stores require the protocol of the features in use, until ctx ends. A node of an
// older build may have begun to use a feature. While older nodes live, requireUsed waits for their upgrade.
func (n *Node) requireUsed(ctx context.Context) error {
	done, told := 0, ""
	for first := true; first || wake.Sleep(ctx, requireEvery); first = false {
		feature, protocol := n.used()
		if protocol <= done {
			continue
		}
		within, cancel := context.WithTimeout(ctx, requireEvery)
		err := n.needs(within, feature, protocol)
		cancel()
		switch {
		case err == nil:
			done = protocol
		case ctx.Err() == nil && errors.Is(err, seq.ErrProtocol) && err.Error() != told:
			told = err.Error()
			n.cfg.Logger.Warn("older builds are not kept out yet: upgrade all nodes", "error", err)
		}
	}
	return nil
}
