package storecare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// askTime bounds one question to a store, pause is between two.
	askTime = 2 * time.Second
	pause   = 50 * time.Millisecond
)

// wait is nil after that time, or else the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Care is an operator's hold on the stores of one cluster. It is not safe for concurrent
// use; two of them at one time are, and one of them then gets seq.ErrConflict.
type Care struct {
	// Told is called with the number of registers that were read, again and again, by
	// several goroutines; nil: none is.
	Told func(registers uint64)
	// Takeovers is how long a takeover of an exact section may be under way while settle waits
	// for it; 0: DefaultTakeovers.
	Takeovers time.Duration

	cluster string
	era     seq.Era
	secret  seq.Secret
	session seq.Session // of secret; never takes a register that is leased
	opts    []grpc.DialOption

	list    quorum.MemberList
	last    decision                       // the document that list is from; zero for the first list
	clients map[string]*storeclient.Client // by uuid
	group   *quorum.Group                  // of the voters of list
}

// decision is the body of the member list's document.
type decision struct {
	List quorum.MemberList `json:"list"`
	// Before is the newest list without a learner: what an abort goes back to.
	Before quorum.MemberList `json:"before"`
	// R and W are those of the list in which the learner of List votes.
	R int `json:"r,omitempty"`
	W int `json:"w,omitempty"`
	// Why says what the change is for, for people.
	Why string `json:"why"`
}

// DefaultTakeovers is far beyond what a takeover takes while an AllocSvr runs.
const DefaultTakeovers = 30 * time.Second

// Open connects to the stores at the addresses, of which W must vote, and finishes
// telling them a list that was decided and not told. Errors are those of
// storeclient.Connect. The caller closes the Care.
func Open(ctx context.Context, addrs []string, opts ...grpc.DialOption) (*Care, error) {
	cluster, err := storeclient.Connect(ctx, addrs, opts...)
	if err != nil {
		return nil, err
	}
	id := cluster.Identity
	secret := seq.NewSecret("")
	c := &Care{cluster: id.Ref.Cluster, era: id.Ref.Era, secret: secret, session: secret.Session(), opts: opts,
		clients: map[string]*storeclient.Client{}}
	list := id.List()
	var left []string // addresses at which no member answers
	for _, s := range cluster.Stores {
		if uuid := s.Client.UUID(); uuid != "" {
			c.clients[uuid] = s.Client
		} else if s.UUID != "" {
			c.clients[s.UUID] = s.Client
		} else {
			_ = s.Client.Close() // of the first list, and does not answer
		}
		if _, member := list.Find(s.Client.UUID()); !member {
			left = append(left, s.Addr)
		}
	}
	if list.Version == 1 {
		c.addresses(ctx, list, left)
	}
	if err := c.use(list); err == nil {
		err = c.catchUp(ctx)
	} else {
		err = fmt.Errorf("use member list %d: %w", list.Version, err)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// addresses puts into the first list, which has none, those of the stores that answer.
// Those that do not have the addresses that are left. If these are several, which store
// has which is a guess: a dialler checks the uuid of a member, so that a wrong address is as
// good as none, and those that are lost can be replaced one after the other.
func (c *Care) addresses(ctx context.Context, list quorum.MemberList, left []string) {
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

// Close closes all connections.
func (c *Care) Close() error {
	if c.group != nil {
		c.group.Close()
	}
	var errs []error
	for _, client := range c.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// List is the member list that is in force.
func (c *Care) List() quorum.MemberList { return c.list }

// Cluster and era of the stores.
func (c *Care) Cluster() (string, seq.Era) { return c.cluster, c.era }

func (c *Care) ref() quorum.Ref { return c.list.Ref(c.cluster, c.era) }

// use speaks to the voters of the list from here on.
func (c *Care) use(list quorum.MemberList) error {
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
	cfg := quorum.Config{Ref: list.Ref(c.cluster, c.era), N: list.N(), R: list.R, W: list.W, Secret: c.secret}
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

func (c *Care) client(m quorum.Member) (*storeclient.Client, error) {
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

// catchUp goes over to lists that were decided under this one and not told to W stores.
func (c *Care) catchUp(ctx context.Context) error {
	for {
		doc, err := c.group.LoadDocument(ctx, c.session, seq.MembersRegister)
		if err != nil {
			return err
		}
		if doc.Version == 0 {
			return nil
		}
		var d decision
		if err := json.Unmarshal(doc.Body, &d); err != nil {
			return fmt.Errorf("member list of document version %d: %w", doc.Version, err)
		}
		c.last = d
		if d.List.Version <= c.list.Version {
			return nil
		}
		if err := c.tell(ctx, d.List); err != nil {
			return err
		}
	}
}

// decide replaces the list by next and tells all stores.
func (c *Care) decide(ctx context.Context, next quorum.MemberList, d decision) error {
	next.Version = c.list.Version + 1
	next.Sort()
	for _, m := range next.Members {
		if m.Addr == "" {
			return fmt.Errorf("%w: %s does not answer; bring it back first, or replace it", ErrAddress, m.Name)
		}
	}
	if err := next.Validate(); err != nil {
		return err
	}
	if err := quorum.Overlap(c.list, next); err != nil {
		return err
	}
	d.List = next
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := c.group.SwapDocument(ctx, c.session, seq.MembersRegister, c.list.Version-1, body); err != nil {
		return err
	}
	c.last = d
	return c.tell(ctx, next)
}

// tell has the stores take a decided list over, until W of its voters have, and with
// them its learner.
func (c *Care) tell(ctx context.Context, list quorum.MemberList) error {
	var everybody []quorum.Member
	for _, m := range slices.Concat(list.Members, c.list.Members) {
		if !slices.ContainsFunc(everybody, func(o quorum.Member) bool { return o.UUID == m.UUID }) {
			everybody = append(everybody, m)
		}
	}
	for {
		errs := make([]error, len(everybody))
		var wg sync.WaitGroup
		for i, m := range everybody {
			client, err := c.client(m)
			if err != nil {
				return err
			}
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, askTime)
				defer cancel()
				_, errs[i] = client.Adopt(ctx, c.cluster, c.era, list)
			})
		}
		wg.Wait()
		told := 0
		for i, m := range everybody {
			if now, listed := list.Find(m.UUID); listed && !now.Learner && errs[i] == nil {
				told++
			} else if listed && now.Learner && errs[i] != nil {
				told = -quorum.MaxStores
			}
		}
		if told >= list.W {
			return c.use(list)
		}
		if wait(ctx, pause) != nil {
			return fmt.Errorf("tell member list %d: %w: %w", list.Version, seq.ErrNoQuorum, errors.Join(errs...))
		}
	}
}
