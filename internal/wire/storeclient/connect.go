package storeclient

import (
	"cmp"
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
	Identity quorum.Identity // of one voting store; all share N, R, W, Mapping, Members and Ref
	Stores   []Named         // the voters: one an address, in the order given, or as in a later member list
	Odd      []Odd           // stores that answered and do not belong to the others
	given    int             // addresses
}

// Named is one store of a cluster.
type Named struct {
	Addr string
	UUID string // of a member, which the client speaks with alone
	// Guess says that no member answered at the address, and the first member list has none. A
	// Follower puts it right.
	Guess  bool
	Client *Client
}

// Odd is a store that answers at one of the addresses and does not belong to the W that agree.
type Odd struct {
	Addr, Name, UUID string
	Err              error // says what is odd
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
	n := c.Identity.N
	if addrs := cmp.Or(c.given, len(c.Stores)); addrs != n && c.Identity.Ref.Members <= 1 || len(c.Stores) != n {
		return fmt.Errorf("%w: %d addresses for %d stores, expected one for each", seq.ErrBadArgument, addrs, n)
	}
	return nil
}

// Connect asks the stores at the addresses who they are until W of them vote as one
// cluster, binding those that are new, or until ctx ends: a *Shortfall then, with a
// reason for each. Stores that do not answer are taken along; the Ref of each later
// request checks them. If the member list was changed since the addresses were written
// down, the stores that are left of them lead to the others: the Cluster has the voters of
// the newest list, and stores that have an older one are told; likewise of spaces that were added.
//
// Connect goes by W stores that agree. A store that does not belong to them is odd: it is left out,
// and the Cluster names it. Connect fails at once if the stores that agree are too few even with
// those that do not answer, naming the odd ones: seq.ErrForeignCluster, seq.ErrStaleEra for another
// era, N, R, W or member list, seq.ErrBadMapping, seq.ErrBadArgument for a store at two addresses.
// It fails likewise if W stores agree on one cluster, and W others on another, or if there is no
// address. The caller closes the Cluster.
func Connect(ctx context.Context, addrs []string, opts ...grpc.DialOption) (Cluster, error) {
	stores, err := dialAll(addrs, opts)
	fail := func(err error) (Cluster, error) {
		for _, s := range stores {
			err = errors.Join(err, s.client.Close())
		}
		return Cluster{}, fmt.Errorf("connect to the stores: %w", err)
	}
	if err != nil {
		return fail(err)
	}
	for {
		describe(ctx, stores)
		if err := sift(stores); err != nil {
			tell(opts, shortfall(stores))
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
		if err := errors.Join(sift(stores), fit(stores)); err != nil {
			return fail(err)
		}
		if voter := quorumOf(stores); voter != nil {
			id := voter.id
			id.Mapping = longest(answered(stores))
			id.Incarnation = known(answered(stores))
			found := clusterOf(id, stores)
			found.given = len(addrs)
			return found, nil
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

// dialAll makes a candidate for each address. On an error, what it returns is still to be closed.
func dialAll(addrs []string, opts []grpc.DialOption) (stores []*candidate, err error) {
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: no address", seq.ErrBadArgument)
	}
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			return stores, fmt.Errorf("%w: the address %s is given twice", seq.ErrBadArgument, addr)
		}
		client, err := Dial(addr, opts...)
		if err != nil {
			return stores, err
		}
		stores = append(stores, &candidate{client: client})
	}
	return stores, nil
}

// candidate is a store that Connect asks.
type candidate struct {
	client *Client
	member bool            // the client speaks with one member of a list alone
	id     quorum.Identity // zero if err
	err    error           // of the last round
	odd    error           // why the store does not belong to the others, though it answered
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
		if s.member {
			s.id, s.err = s.client.Describe(ctx)
		} else if s.id, s.err = s.client.who(ctx); s.err == nil {
			s.client.uuid.Store(&s.id.UUID)
		}
		if s.err == nil && s.id.N == 0 {
			s.err = fmt.Errorf("store %s: %w: %s", s.client.Addr(), seq.ErrNotVoting, s.id.State)
		}
	})
}

// answered are the stores that told who they are in this round, without the odd ones.
func answered(stores []*candidate) []*candidate {
	return slices.DeleteFunc(slices.Clone(stores), func(s *candidate) bool { return s.err != nil || s.odd != nil })
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
		switch why := cmp.Or(s.err, s.odd); {
		case why != nil:
			short.why = fmt.Errorf("%w; %w", short.why, why)
		case !s.id.Voting:
			short.why = fmt.Errorf("%w; store %s: %s", short.why, s.client.Addr(), s.id.State)
		default:
			continue
		}
		short.Missing = append(short.Missing, s.client.Addr())
	}
	return short
}
