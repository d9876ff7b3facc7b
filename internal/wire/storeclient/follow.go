package storeclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// errNotAsked is a candidate that came up in this round.
var errNotAsked = errors.New("not asked yet")

const (
	// followEvery is the time between two looks that nothing else causes.
	followEvery = 5 * time.Second
	// followPause is the time between two looks in a row.
	followPause = 25 * time.Millisecond
)

// Follower keeps connections to the voters of the newest member list, and tells the
// list to stores that have an older one. It is safe for concurrent use.
type Follower struct {
	cluster Cluster // as connected: its Identity's list is the first
	log     *slog.Logger
	change  func(list quorum.MemberList, stores []quorum.NamedStore) error
	opts    []grpc.DialOption
	kick    chan struct{} // of one place
	spaces  func(ctx context.Context, m seq.Mapping) error
	mapping seq.Mapping       // that spaces took last; of Run alone
	odd     map[string]string // what was warned of, by address; of Run alone

	mu      sync.Mutex // guards all below
	list    quorum.MemberList
	stores  []Named   // its voters
	retired []*Client // closed by Close: rounds may still be under way
}

// NewFollower takes the cluster over: its Close closes the clients. change is called
// with each newer list and its voters, from one goroutine; if it fails it is called
// again later.
func NewFollower(c Cluster, log *slog.Logger, change func(quorum.MemberList, []quorum.NamedStore) error, opts ...grpc.DialOption) *Follower {
	return &Follower{cluster: c, log: log, change: change, opts: opts, kick: make(chan struct{}, 1),
		list: c.Identity.List(), stores: slices.Clone(c.Stores), mapping: c.Identity.Mapping, odd: map[string]string{},
		spaces: func(context.Context, seq.Mapping) error { return nil }}
}

// OnSpaces has take called with each mapping to which spaces were added, from the goroutine of
// Run; if it fails it is called again later. Call it before Run.
func (f *Follower) OnSpaces(take func(ctx context.Context, m seq.Mapping) error) { f.spaces = take }

// NamedStores are the stores as a quorum.Group and quorum.Leases want them.
func NamedStores(stores []Named) []quorum.NamedStore {
	named := make([]quorum.NamedStore, len(stores))
	for i, s := range stores {
		named[i] = quorum.NamedStore{Name: s.Addr, UUID: s.UUID, Store: s.Client}
	}
	return named
}

// Kick has the follower look soon. It does not block.
func (f *Follower) Kick() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// Extend tells the stores a mapping that was decided, until W of them have it; or until ctx
// ends, and it says which have not. Stores that are away are told when they come back.
func (f *Follower) Extend(ctx context.Context, m seq.Mapping) error {
	own := f.cluster.Identity.Ref
	for {
		var asked []*candidate
		for _, s := range f.Stores() {
			asked = append(asked, &candidate{client: s.Client, member: true})
		}
		each(ctx, asked, func(ctx context.Context, s *candidate) {
			s.id, s.err = s.client.Extend(ctx, own.Cluster, own.Era, m)
		})
		if len(answered(asked)) >= f.List().W {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("tell the stores of added spaces: %w", shortfall(asked))
		case <-time.After(retryPause):
		}
	}
}

// warn logs, once for each reason, which stores answer and are not members that serve.
func (f *Follower) warn(asked []*candidate) {
	for _, s := range asked {
		addr, why := s.client.Addr(), ""
		if Refused(s.err) {
			why = s.err.Error()
		}
		if why != "" && f.odd[addr] != why {
			f.log.Warn("a store does not belong to the others and is left out", "addr", addr, "store", s.id.Name, "uuid", s.id.UUID, "error", why)
		}
		f.odd[addr] = why
	}
}

// redial connects again where a store answers for another: a connection stays with the store that
// it was made to, and the name of the address may have come to mean another one since.
func (f *Follower) redial(asked []*candidate) {
	for _, s := range asked {
		if s.err == nil || s.id.UUID == "" {
			continue
		}
		fresh, err := Dial(s.client.Addr(), f.opts...)
		if err != nil {
			f.log.Warn("cannot connect to a store again", "addr", s.client.Addr(), "error", err)
			continue
		}
		_ = s.client.at.Swap(fresh.at.Load()).close() // nothing is under way that the store would not refuse
	}
}

// Stores are the voters of the newest list that is known, at the addresses where they were found.
func (f *Follower) Stores() []Named {
	f.mu.Lock()
	defer f.mu.Unlock()
	stores := slices.Clone(f.stores)
	for i := range stores {
		stores[i].Addr = stores[i].Client.Addr()
	}
	return stores
}

// List is the newest list that is known.
func (f *Follower) List() quorum.MemberList {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list
}

// Run looks for newer lists until ctx ends, and returns nil then.
func (f *Follower) Run(ctx context.Context) error {
	timer := time.NewTimer(followEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.kick:
		case <-timer.C:
		}
		f.look(ctx)
		timer.Reset(followEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// look asks all stores once.
func (f *Follower) look(ctx context.Context) {
	var asked []*candidate
	for _, s := range f.Stores() {
		asked = append(asked, &candidate{client: s.Client, member: true})
	}
	each(ctx, asked, func(ctx context.Context, s *candidate) { s.id, s.err = s.client.who(ctx) })
	for _, moved := range rematch(asked) {
		f.log.Info("a store answers at another address than before", "uuid", moved.client.UUID(), "store", moved.id.Name, "addr", moved.client.Addr())
	}
	f.warn(asked)
	f.redial(asked)
	asked = slices.DeleteFunc(asked, func(s *candidate) bool { // of another cluster or era: nothing to follow
		own := f.cluster.Identity.Ref
		return s.err != nil || s.id.Ref.Cluster != own.Cluster || s.id.Ref.Era != own.Era
	})
	bind(ctx, asked)
	if list := newest(answered(asked)); list.Version > f.List().Version {
		if err := f.goOver(list); err != nil {
			f.log.Warn("cannot go over to the newer member list", "version", list.Version, "error", err)
			return
		}
		f.log.Info("went over to a newer member list", "version", list.Version, "voters", list.Voters())
	}
	adopt(ctx, asked)
	extend(ctx, asked)
	require(ctx, asked)
	if m := longest(answered(asked)); len(m.Spaces) > len(f.mapping.Spaces) {
		if err := f.spaces(ctx, m); err != nil {
			f.log.Warn("cannot go over to added spaces", "spaces", len(m.Spaces), "error", err)
			return
		}
		f.mapping = m
	}
}

// goOver connects to the voters of the list and has change called.
func (f *Follower) goOver(list quorum.MemberList) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var stores []Named
	var fresh []*Client
	for _, m := range list.Voters() {
		if i := slices.IndexFunc(f.stores, func(s Named) bool { return s.UUID == m.UUID || s.Client.UUID() == m.UUID }); i >= 0 {
			s := f.stores[i]
			s.UUID = m.UUID
			stores = append(stores, s)
			continue
		}
		client, err := DialMember(m, f.opts...)
		if err != nil {
			return errors.Join(fmt.Errorf("store %s: %w", m.Name, err), closeAll(fresh))
		}
		fresh = append(fresh, client)
		stores = append(stores, Named{Addr: m.Addr, UUID: m.UUID, Client: client})
	}
	if err := f.change(list, NamedStores(stores)); err != nil {
		return errors.Join(err, closeAll(fresh))
	}
	for _, s := range f.stores {
		if !slices.ContainsFunc(stores, func(o Named) bool { return o.Client == s.Client }) {
			f.retired = append(f.retired, s.Client)
		}
	}
	f.list, f.stores = list, stores
	return nil
}

// Close closes all connections. Run must have ended.
func (f *Follower) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.retired
	for _, s := range f.stores {
		all = append(all, s.Client)
	}
	return closeAll(all)
}

func closeAll(clients []*Client) error {
	errs := make([]error, len(clients))
	for i, c := range clients {
		errs[i] = c.Close()
	}
	return errors.Join(errs...)
}
