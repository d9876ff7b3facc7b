package storeadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Care is an operator's hold on the stores of one cluster. It is not safe for concurrent
// use; two of them at one time are, and one of them then gets seq.ErrConflict.
type Care struct {
	cluster

	last decision // the document that list is from; zero for the first list
}

// decision is the body of the member list's document.
type decision struct {
	List quorum.MemberList `json:"list"`
	// Before is the newest list without a learner: what an abort goes back to.
	Before quorum.MemberList `json:"before"`
	// R and W are the quorums of the list in which the learner of List votes.
	R int `json:"r,omitempty"`
	W int `json:"w,omitempty"`
	// Why says what the change is for, for people.
	Why string `json:"why"`
}

// Open connects to the stores at the addresses, of which W must vote. It sends them the last decided member
// list, if some have not received it. It returns the errors of storeclient.Connect. The caller closes the
// Care.
func Open(ctx context.Context, addrs []string, opts ...grpc.DialOption) (*Care, error) {
	found, err := storeclient.Connect(ctx, addrs, opts...)
	if err != nil {
		return nil, err
	}
	id := found.Identity
	secret := seq.NewSecret("")
	c := &Care{cluster: cluster{name: id.Ref.Cluster, era: id.Ref.Era, secret: secret, session: secret.Session(), opts: opts,
		clients: map[string]*storeclient.Client{}}}
	list := id.List()
	var left []string // addresses at which no member answers
	for _, s := range found.Stores {
		if s.Guess {
			_ = s.Client.Close() // nothing is under way
			left = append(left, s.Addr)
			continue
		}
		c.clients[s.UUID] = s.Client
	}
	if list.Version == 1 {
		c.addresses(ctx, list, left)
	}
	if err = c.use(list); err != nil {
		err = fmt.Errorf("use member list %d: %w", list.Version, err)
	} else {
		err = c.catchUp(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
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
	next.Version, next.Incarnation = c.list.Version+1, c.list.Incarnation
	if !next.Incarnation.Known() { // of a cluster that the version before bound, and changed since
		next.Incarnation = c.list.Derived(seq.ClusterID{}, c.name, c.era)
	}
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
				_, errs[i] = client.Adopt(ctx, c.name, c.era, list)
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
