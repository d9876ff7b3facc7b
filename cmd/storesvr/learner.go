package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// joinTime bounds how long the stores of the cluster are waited for, all together.
const joinTime = 10 * time.Second

// initLearner makes a store of what the cluster's stores tell about themselves.
func initLearner(ctx context.Context, o *initOptions, fs *pflag.FlagSet) error {
	allowed := []string{"learner", "join", "name", "zone", "data-dir", "cluster", "if-missing", "config", "help", "tls-ca", "tls-cert", "tls-key"}
	var wrong error
	fs.Visit(func(f *pflag.Flag) {
		if !slices.Contains(allowed, f.Name) {
			wrong = fmt.Errorf("%w: --%s: a learner takes it from the cluster", storesvr.ErrConfig, f.Name)
		}
	})
	switch {
	case wrong != nil:
		return wrong
	case !o.learner || len(o.join) == 0:
		return fmt.Errorf("%w: --learner and --join go together", storesvr.ErrConfig)
	}
	secured, err := rpc.NewTLS(o.files, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", storesvr.ErrConfig, err)
	}
	return o.learn(ctx, secured)
}

// rejoin makes a learner if a store that answers knows its fellow members, which are bound once all of them had a disk.
func rejoin(ctx context.Context, o *initOptions) (learns bool, err error) {
	secured, err := rpc.NewTLS(o.files, nil)
	if err != nil {
		return false, fmt.Errorf("%w: %w", storesvr.ErrConfig, err)
	}
	if !bound(ctx, o.join, secured.DialOptions()...) {
		return false, nil
	}
	return true, o.learn(ctx, secured)
}

// bound reports whether a store at the addresses knows its fellow members.
func bound(ctx context.Context, addrs []string, dial ...grpc.DialOption) bool {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	answers := make(chan bool, len(addrs))
	for _, addr := range addrs {
		go func() {
			client, err := storeclient.Dial(addr, dial...)
			if err != nil {
				answers <- false
				return
			}
			id, err := client.Describe(ctx)
			_ = client.Close() // nothing is under way
			answers <- err == nil && id.Ref.Members != 0
		}()
	}
	for range addrs {
		if <-answers {
			return true
		}
	}
	return false
}

// learn makes a learner of what the stores at --join tell.
func (o *initOptions) learn(ctx context.Context, secured *rpc.TLS) error {
	id, err := ask(ctx, o.join, secured.DialOptions()...)
	if err != nil {
		return fmt.Errorf("init learner %q: %w", o.Name, err)
	}
	if o.ClusterID != "" && o.ClusterID != id.Ref.Cluster {
		return fmt.Errorf("init learner %q: %w: the stores are of %q, not %q", o.Name, seq.ErrForeignCluster, id.Ref.Cluster, o.ClusterID)
	}
	return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: o.DataDir, ClusterID: id.Ref.Cluster, Name: o.Name,
		Era: id.Ref.Era, Mapping: id.Mapping, Floors: id.Floors, Zone: o.zone, Required: id.Required})
}

// sameLife returns nil if both stores may be of one life of one cluster.
func sameLife(one, id quorum.Identity) error {
	switch {
	case one.Ref.Cluster != id.Ref.Cluster:
		return fmt.Errorf("%w: it is of %q, expected %q", seq.ErrForeignCluster, id.Ref.Cluster, one.Ref.Cluster)
	case one.Ref.Era != id.Ref.Era:
		return fmt.Errorf("%w: it is of era %d, expected era %d", seq.ErrStaleEra, id.Ref.Era, one.Ref.Era)
	}
	return one.Incarnation.Check(id.Incarnation)
}

// ask returns the identity that a voting store answers with. Its floors are the highest that any store
// reports, because each store has its own floor of worker ids, by its own clock. Stores of two clusters or
// eras are an error, because the learner could be for either.
func ask(ctx context.Context, addrs []string, dial ...grpc.DialOption) (quorum.Identity, error) {
	var one quorum.Identity
	var first string
	var errs []error
	for _, addr := range addrs {
		client, err := storeclient.Dial(addr, dial...)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		within, cancel := context.WithTimeout(ctx, joinTime/time.Duration(len(addrs)))
		id, err := client.Describe(within)
		cancel()
		_ = client.Close() // nothing is under way
		if err == nil && id.Voting {
			if one.UUID == "" {
				first = addr
			} else if err := sameLife(one, id); err != nil {
				return quorum.Identity{}, fmt.Errorf("store at %s: %w, which the store at %s has", addr, err, first)
			}
			floors, required := one.Floors.Over(id.Floors), max(one.Required, id.Required)
			one = id
			one.Floors, one.Required = floors, required
			continue
		}
		if err == nil {
			err = fmt.Errorf("store at %s: %w: %s", addr, seq.ErrNotVoting, id.State)
		}
		errs = append(errs, err)
	}
	if one.UUID != "" {
		return one, nil
	}
	return quorum.Identity{}, errors.Join(errs...)
}
