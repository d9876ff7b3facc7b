package storeadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// askTime bounds one question to a store, pause is between two.
	askTime = 2 * time.Second
	pause   = 50 * time.Millisecond
)

// DefaultTakeovers is far beyond what a takeover takes while an AllocSvr runs.
const DefaultTakeovers = 30 * time.Second

// wait is nil after that time, or else the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// cluster is the stores of the member list in force, and the connections to them.
type cluster struct {
	// Told is called repeatedly, by several goroutines, with the number of registers that were read. It may
	// be nil.
	Told func(registers uint64)
	// Takeovers bounds how long repair waits for the takeover of an exact section. Zero means
	// DefaultTakeovers.
	Takeovers time.Duration
	// AnyZones plans changes after which one zone has W of the stores, too.
	AnyZones bool

	name    string
	era     seq.Era
	secret  seq.Secret
	session seq.Session // of secret; never takes a register that is leased
	opts    []grpc.DialOption

	list    quorum.MemberList
	clients map[string]*storeclient.Client // by uuid
	group   *quorum.Group                  // of the voters of list
}

// List is the member list that is in force.
func (c *cluster) List() quorum.MemberList { return c.list }

// Cluster and era of the stores.
func (c *cluster) Cluster() (string, seq.Era) { return c.name, c.era }

func (c *cluster) ref() quorum.Ref { return c.list.Ref(c.name, c.era) }

// use speaks to the voters of the list from here on.
func (c *cluster) use(list quorum.MemberList) error {
	if !list.Incarnation.Known() { // decided by a build of the version before
		list.Incarnation = c.list.Incarnation
	}
	var named []quorum.NamedStore
	for _, m := range list.Members {
		client, err := c.client(m)
		if err != nil {
			return err
		}
		if !m.Learner {
			named = append(named, quorum.NamedStore{Name: m.Name, UUID: m.UUID, Store: client})
		}
	}
	cfg := quorum.Config{Ref: list.Ref(c.name, c.era), N: list.N(), R: list.R, W: list.W, Secret: c.secret}
	group, err := quorum.NewGroup(cfg, named)
	if err != nil {
		return err
	}
	if c.group != nil {
		c.group.Close()
	}
	c.list, c.group = list, group
	return nil
}

// unreachable stands for a store that has no address.
const unreachable = "127.0.0.1:0"

func (c *cluster) client(m quorum.Member) (*storeclient.Client, error) {
	if client := c.clients[m.UUID]; client != nil {
		return client, nil
	}
	m.Addr = cmp.Or(m.Addr, unreachable)
	client, err := storeclient.DialMember(m, c.opts...)
	if err == nil {
		c.clients[m.UUID] = client
	}
	return client, err
}

// Close closes all connections.
func (c *cluster) Close() error {
	if c.group != nil {
		c.group.Close()
	}
	var errs []error
	for _, client := range c.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// addresses fills in the addresses of the first list, which has none. Stores that answer get their own. The
// other stores get the addresses that are left. If several are left, their order is a guess. A wrong guess
// does no harm, because a dialler checks the uuid of a member. So lost stores can be replaced one after the
// other.
func (c *cluster) addresses(ctx context.Context, list quorum.MemberList, left []string) {
	missing := 0
	for _, m := range list.Members {
		if c.clients[m.UUID] == nil {
			missing++
		}
	}
	for i, m := range list.Members {
		client := c.clients[m.UUID]
		if client == nil {
			if len(left) == missing {
				list.Members[i].Addr, left = left[0], left[1:]
				missing--
			}
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, askTime)
		id, err := client.Describe(ctx)
		cancel()
		if err == nil {
			list.Members[i].Addr = addressOf(id, client)
		}
	}
}

// addressOf is what others are told of a store's address: its own word, unless that
// names no host.
func addressOf(id quorum.Identity, client *storeclient.Client) string {
	host, _, err := net.SplitHostPort(id.Addr)
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		return client.Addr()
	}
	return id.Addr
}

// busy says whether a change is half done.
func (c *cluster) busy() bool {
	_, learner := c.list.Learner()
	return learner
}

// find is the voter with that name or uuid.
func (c *cluster) find(who string) (quorum.Member, bool) {
	for _, m := range c.list.Voters() {
		if m.Name == who || m.UUID == who {
			return m, true
		}
	}
	return quorum.Member{}, false
}

func (c *cluster) names() []string { return namesOf(c.list.Members) }

// serves says whether the store answers and votes.
func (c *cluster) serves(ctx context.Context, m quorum.Member) bool {
	client, err := c.client(m)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	id, err := client.Describe(ctx)
	return err == nil && id.Voting
}

// ask gives the stores of the list that answer and have taken it over: at least W voters,
// and the learner.
func (c *cluster) ask(ctx context.Context) (voters []*source, learner *source, err error) {
	all := make([]*source, len(c.list.Members))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range c.list.Members {
		client, err := c.client(m)
		if err != nil {
			return nil, nil, err
		}
		all[i] = &source{Member: m, client: client}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			all[i].id, errs[i] = client.Describe(ctx)
		})
	}
	wg.Wait()
	for i, s := range all {
		switch {
		case errs[i] != nil:
		case s.id.Ref != c.ref():
			errs[i] = fmt.Errorf("store %s: %w: it has member list %d", s.Name, seq.ErrStaleEra, s.id.Ref.Members)
		case s.Learner:
			learner = s
		case s.id.Voting:
			voters = append(voters, s)
		default:
			errs[i] = fmt.Errorf("store %s: %w: %s", s.Name, seq.ErrNotVoting, s.id.State)
		}
	}
	if _, wanted := c.list.Learner(); len(voters) < c.list.W || wanted && learner == nil {
		return nil, nil, fmt.Errorf("ask the stores: %w: %d of %d voters needed: %w", seq.ErrNoQuorum, len(voters), c.list.W, errors.Join(errs...))
	}
	return voters, learner, nil
}

// dump reads all the sources.
func (c *cluster) dump(ctx context.Context, sources []*source) error {
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, s := range sources {
		s.has = states{}
		wg.Go(func() {
			_, errs[i] = s.client.Dump(ctx, c.ref(), func(some []quorum.RegisterState) error {
				for _, st := range some {
					s.has[st.Register] = st
				}
				if c.Told != nil {
					c.Told(uint64(len(some)))
				}
				return nil
			})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Caller is the principal that the first store that answers takes this operator for.
func (c *cluster) Caller(ctx context.Context) (string, error) {
	var errs []error
	for _, m := range c.list.Members {
		client, err := c.client(m)
		if err == nil {
			within, cancel := context.WithTimeout(ctx, askTime)
			reply, asked := client.DescribeAll(within)
			cancel()
			if asked == nil {
				return reply.GetCaller(), nil
			}
			err = asked
		}
		errs = append(errs, fmt.Errorf("store %s: %w", m.Name, err))
	}
	return "", errors.Join(errs...)
}

// Documents returns the group with the documents of the cluster, and the session to write them with.
func (c *cluster) Documents() (*quorum.Group, seq.Session) { return c.group, c.session }

// WindowsOver tells every store of the list, one after the other, that no process from
// before the restore holds a snowflake worker id or a window of one; tell gets what each
// says. Worker ids are kept back until the highest floor of any W stores, so after an
// error, which names the stores that did not hear it, it is worth repeating.
func (c *cluster) WindowsOver(ctx context.Context, reason string, tell func(*pb.DescribeReply)) error {
	var errs []error
	for _, m := range c.list.Members {
		client, err := c.client(m)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		within, cancel := context.WithTimeout(ctx, askTime)
		reply, err := client.WindowsOver(within, c.name, c.era, reason)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("store %s: %w", m.Name, err))
			continue
		}
		tell(reply)
	}
	return errors.Join(errs...)
}
