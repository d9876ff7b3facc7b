package storeclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// One round of Connect asks each store once, for at most describeTime; rounds are
// retryPause apart.
const (
	describeTime = 2 * time.Second
	retryPause   = 100 * time.Millisecond
)

// Cluster is what Connect found.
type Cluster struct {
	Identity quorum.Identity // of one voting store; N, R, W, Mapping, Members and Ref are those of all
	Stores   []Named         // the voters: one an address, in the order given, or as in a later member list
}

// Named is one store of a cluster.
type Named struct {
	Addr   string
	UUID   string // empty if it did not answer Connect; Client.UUID knows it later
	Client *Client
}

// Close closes all clients.
func (c Cluster) Close() error {
	errs := make([]error, len(c.Stores))
	for i, s := range c.Stores {
		errs[i] = s.Client.Close()
	}
	return errors.Join(errs...)
}

// Complete is nil if every voter has an address, and seq.ErrBadArgument otherwise: the
// first member list does not lead to stores that were not named.
func (c Cluster) Complete() error {
	if n := c.Identity.N; len(c.Stores) != n {
		return fmt.Errorf("%w: %d addresses for %d stores, expected one for each", seq.ErrBadArgument, len(c.Stores), n)
	}
	return nil
}

// Connect asks the stores at the addresses who they are until W of them vote as one
// cluster, binding those that are new, or until ctx ends: a *Shortfall then, with a
// reason for each. Stores that do not answer are taken along; the Ref of each later
// request checks them. If the member list was changed since the addresses were written
// down, the stores that are left of them lead to the others: the Cluster has the voters of
// the newest list, and stores that have an older one are told; likewise of spaces that were added. It fails at once if the
// stores that answer do not belong together, naming the address: seq.ErrForeignCluster,
// seq.ErrStaleEra for another era, N, R, W or member list, seq.ErrBadMapping,
// seq.ErrBadArgument for a store at two addresses or no address. The caller closes the
// Cluster.
func Connect(ctx context.Context, addrs []string, opts ...grpc.DialOption) (Cluster, error) {
	if len(addrs) == 0 {
		return Cluster{}, fmt.Errorf("connect to the stores: %w: no address", seq.ErrBadArgument)
	}
	stores := make([]*candidate, 0, len(addrs))
	fail := func(err error) (Cluster, error) {
		for _, s := range stores {
			err = errors.Join(err, s.client.Close())
		}
		return Cluster{}, fmt.Errorf("connect to the stores: %w", err)
	}
	for _, addr := range addrs {
		client, err := Dial(addr, opts...)
		if err != nil {
			return fail(err)
		}
		stores = append(stores, &candidate{client: client})
	}
	for {
		describe(ctx, stores)
		if err := verifyOne(stores); err != nil {
			return fail(err)
		}
		bind(ctx, stores)
		more, err := unheardOf(stores, opts)
		stores = append(stores, more...)
		if err != nil {
			return fail(err)
		}
		if len(more) > 0 {
			continue
		}
		adopt(ctx, stores)
		extend(ctx, stores)
		require(ctx, stores)
		vouch(ctx, stores)
		if err := errors.Join(verifyOne(stores), fit(stores)); err != nil {
			return fail(err)
		}
		if voter := quorumOf(stores); voter != nil {
			id := voter.id
			id.Mapping = longest(answered(stores))
			id.Incarnation = known(answered(stores))
			return clusterOf(id, stores)
		}
		short := shortfall(stores)
		tell(opts, short)
		select {
		case <-ctx.Done():
			return fail(short)
		case <-time.After(retryPause):
		}
	}
}

// candidate is a store that Connect asks.
type candidate struct {
	client *Client
	id     quorum.Identity // zero if err
	err    error           // of the last round
}

func (s *candidate) bound() bool { return len(s.id.Members) > 0 }

// each asks all stores at the same time.
func each(ctx context.Context, stores []*candidate, ask func(ctx context.Context, s *candidate)) {
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() { ask(ctx, s) })
	}
	wg.Wait()
}

// describe asks all stores who they are.
func describe(ctx context.Context, stores []*candidate) {
	each(ctx, stores, func(ctx context.Context, s *candidate) {
		if s.id, s.err = s.client.Describe(ctx); s.err == nil && s.id.N == 0 {
			s.err = fmt.Errorf("store %s: %w: %s", s.client.addr, seq.ErrNotVoting, s.id.State)
		}
	})
}

// answered are the stores that told who they are in this round.
func answered(stores []*candidate) []*candidate {
	return slices.DeleteFunc(slices.Clone(stores), func(s *candidate) bool { return s.err != nil })
}

// verifyOne checks that the stores that answered belong together.
func verifyOne(stores []*candidate) error {
	there := answered(stores)
	byUUID := map[string]string{}
	for _, s := range there {
		if err := verifyPair(there[0], s); err != nil {
			return fmt.Errorf("store %s: %w", s.client.addr, err)
		}
		if other, twice := byUUID[s.id.UUID]; twice {
			return fmt.Errorf("store %s: %w: it is the store at %s again", s.client.addr, seq.ErrBadArgument, other)
		}
		byUUID[s.id.UUID] = s.client.addr
	}
	m := longest(there)
	for _, s := range there {
		if !m.Extends(s.id.Mapping) {
			return fmt.Errorf("store %s: %w: neither it nor that of another store is the other with spaces added", s.client.addr, seq.ErrBadMapping)
		}
	}
	if first := firstBound(there); first != nil {
		for _, s := range there {
			if s.bound() && s.id.Ref.Members == first.id.Ref.Members && s.id.Ref != first.id.Ref {
				return fmt.Errorf("store %s: %w: bound to %v, the store at %s to %v", s.client.addr, seq.ErrStaleEra, s.id.Members, first.client.addr, first.id.Members)
			}
		}
	}
	if n := len(there); n > 0 && n > there[0].id.N && newest(there).Version <= 1 {
		return fmt.Errorf("%w: %d stores answer, N is %d", seq.ErrBadArgument, n, there[0].id.N)
	}
	return nil
}

func verifyPair(first, s *candidate) error {
	a, b := first.id, s.id
	switch {
	case b.Ref.Cluster != a.Ref.Cluster:
		return fmt.Errorf("%w: it is of %q, the store at %s of %q", seq.ErrForeignCluster, b.Ref.Cluster, first.client.addr, a.Ref.Cluster)
	case b.Ref.Era != a.Ref.Era:
		return fmt.Errorf("%w: it is of era %d, the store at %s of %d", seq.ErrStaleEra, b.Ref.Era, first.client.addr, a.Ref.Era)
	case (b.Ref.Members == a.Ref.Members || max(b.Ref.Members, a.Ref.Members) <= 1) && (b.N != a.N || b.R != a.R || b.W != a.W):
		return fmt.Errorf("%w: its N/R/W are %d/%d/%d, those of the store at %s %d/%d/%d", seq.ErrStaleEra, b.N, b.R, b.W, first.client.addr, a.N, a.R, a.W)
	case !a.Mapping.Extends(b.Mapping) && !b.Mapping.Extends(a.Mapping):
		return fmt.Errorf("%w: it differs from that of the store at %s", seq.ErrBadMapping, first.client.addr)
	}
	return nil
}

func firstBound(stores []*candidate) *candidate {
	if i := slices.IndexFunc(stores, (*candidate).bound); i >= 0 {
		return stores[i]
	}
	return nil
}

// bind binds the stores that are not, if it is known who belongs to the cluster: a bound
// store says so, or all N answer. A store that refuses keeps its error and does not vote.
func bind(ctx context.Context, stores []*candidate) {
	there := answered(stores)
	if len(there) == 0 || !slices.ContainsFunc(there, func(s *candidate) bool { return !s.bound() }) {
		return
	}
	var members []quorum.Member
	if first := firstBound(there); first != nil {
		if newest(there).Version > 1 {
			return // what is not bound by now was made for another list
		}
		members = first.id.Members
	} else if len(there) == there[0].id.N {
		for _, s := range there {
			members = append(members, quorum.Member{UUID: s.id.UUID, Name: s.id.Name, Zone: s.id.Zone})
		}
	} else {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	for _, s := range there {
		if !s.bound() {
			ref := s.id.Ref
			s.id, s.err = s.client.Bind(ctx, ref.Cluster, ref.Era, members)
		}
	}
}

// quorumOf is a voting store if at least W stores vote, else nil.
func quorumOf(stores []*candidate) *candidate {
	there := answered(stores)
	version := newest(there).Version
	voters := slices.DeleteFunc(there, func(s *candidate) bool { return !s.id.Voting || s.id.Ref.Members != version })
	if len(voters) == 0 || len(voters) < voters[0].id.W {
		return nil
	}
	return voters[0]
}

// clusterOf takes the voters of the list and closes what else there is.
func clusterOf(id quorum.Identity, stores []*candidate) (Cluster, error) {
	c := Cluster{Identity: id}
	for _, s := range stores {
		uuid := s.client.UUID()
		if voter := voterOf(id.List(), s); voter != nil {
			uuid = voter.UUID
		} else if id.Ref.Members > 1 {
			_ = s.client.Close() // nothing is under way
			continue
		}
		c.Stores = append(c.Stores, Named{Addr: s.client.addr, UUID: uuid, Client: s.client})
	}
	return c, nil
}

// Shortfall is the seq.ErrNoQuorum of Connect.
type Shortfall struct {
	Missing []string // addresses of the stores that do not vote or did not answer
	why     error
}

// Error says for each store why it does not count.
func (s *Shortfall) Error() string { return s.why.Error() }

// Unwrap makes errors.Is(err, seq.ErrNoQuorum) hold.
func (s *Shortfall) Unwrap() error { return s.why }

// telling is a grpc.DialOption that only Connect knows.
type telling struct {
	grpc.EmptyDialOption
	tell func(*Shortfall)
}

// Telling has Connect tell after each round in which too few stores voted which those
// were, from the goroutine that called it.
func Telling(tell func(*Shortfall)) grpc.DialOption { return telling{tell: tell} }

func tell(opts []grpc.DialOption, short *Shortfall) {
	for _, o := range opts {
		if t, ok := o.(telling); ok {
			t.tell(short)
		}
	}
}

// shortfall says which stores are missing.
func shortfall(stores []*candidate) *Shortfall {
	short := &Shortfall{why: seq.ErrNoQuorum}
	for _, s := range stores {
		switch {
		case s.err != nil:
			short.why = fmt.Errorf("%w; %w", short.why, s.err)
		default:
			short.why = fmt.Errorf("%w; store %s: %s", short.why, s.client.addr, s.id.State)
		}
		if s.err != nil || !s.id.Voting {
			short.Missing = append(short.Missing, s.client.addr)
		}
	}
	return short
}
