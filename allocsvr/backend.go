package allocsvr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// backend holds the stores of the registers, StoreSvr or etcd, as they were found.
type backend struct {
	identity quorum.Identity
	stores   []quorum.NamedStore
	// follow starts to follow the member list, and calls change with each later list. Nothing else uses the
	// backend's connections after the Close of the follower.
	follow func(change func(quorum.MemberList, []quorum.NamedStore) error) follower
	close  func() error // if follow was not called
}

// follower keeps a backend's connections up to date.
type follower interface {
	Kick()
	Run(ctx context.Context) error
	OnSpaces(take func(ctx context.Context, m seq.Mapping) error)
	Extend(ctx context.Context, m seq.Mapping) error
	Require(ctx context.Context, protocol int) error
	Close() error
	describe(ctx context.Context) []*pb.StoreStatus
}

// Etcd configures etcd as the store of the registers, in place of StoreSvr.
type Etcd struct {
	etcdclient.Config
	Prefix      string // of all keys
	Requirement etcdclient.Requirement
}

// onStores returns a backend of StoreSvr.
func (s *Server) onStores(c storeclient.Cluster, opts ...grpc.DialOption) backend {
	return backend{identity: c.Identity, stores: storeclient.NamedStores(c.Stores), close: c.Close,
		follow: func(change func(quorum.MemberList, []quorum.NamedStore) error) follower {
			return storesFollower{storeclient.NewFollower(c, s.cfg.Logger, change, opts...)}
		}}
}

type storesFollower struct{ *storeclient.Follower }

func (f storesFollower) describe(ctx context.Context) []*pb.StoreStatus {
	return describeStores(ctx, f.Stores())
}

// onEtcd checks etcd and finds the cluster there. It returns the errors of etcdclient and etcdstore.
func (s *Server) onEtcd(ctx context.Context) (backend, error) {
	client, err := etcdclient.Dial(s.cfg.Etcd.Config)
	if err != nil {
		return backend{}, err
	}
	if _, err = client.Check(ctx, s.cfg.Etcd.Requirement); err == nil {
		var store *etcdstore.Store
		store, err = etcdstore.Open(ctx, etcdstore.Config{KV: client, Prefix: s.cfg.Etcd.Prefix, Clock: clock.Boot(), MaxLease: MaxLease, Logger: s.cfg.Logger})
		if err == nil {
			id := store.Identity()
			return backend{identity: id, stores: []quorum.NamedStore{{Name: id.Name, UUID: id.UUID, Store: store}}, close: client.Close,
				follow: func(func(quorum.MemberList, []quorum.NamedStore) error) follower {
					return &etcdFollower{client: client, store: store, prefix: s.cfg.Etcd.Prefix}
				}}, nil
		}
	}
	_ = client.Close() // nothing was begun
	return backend{}, err
}

// etcdFollower follows nothing, because etcd manages its own members.
type etcdFollower struct {
	client *etcdclient.Client
	store  *etcdstore.Store
	prefix string
	closed sync.Once
}

// Kick implements follower.
func (f *etcdFollower) Kick() {}

// Run implements follower.
func (f *etcdFollower) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// OnSpaces implements follower. Spaces on etcd are never added.
func (f *etcdFollower) OnSpaces(func(context.Context, seq.Mapping) error) {}

// Extend implements follower.
func (f *etcdFollower) Extend(context.Context, seq.Mapping) error { return errNoGrowth }

// Require implements follower.
func (f *etcdFollower) Require(ctx context.Context, protocol int) error {
	return f.store.Require(ctx, protocol)
}

var errNoGrowth = fmt.Errorf("%w: spaces cannot be added to a cluster on etcd", seq.ErrBadArgument)

// Close implements follower.
func (f *etcdFollower) Close() (err error) {
	f.closed.Do(func() { err = f.client.Close() })
	return err
}

// describe shows the members of etcd.
func (f *etcdFollower) describe(ctx context.Context) []*pb.StoreStatus {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	id := f.store.Identity()
	var out []*pb.StoreStatus
	for _, m := range f.client.Status(ctx) {
		if errors.Is(m.Err, etcdclient.ErrUnasked) {
			continue
		}
		st := &pb.StoreStatus{Addr: m.Addr, Uuid: id.UUID, Name: cmp.Or(m.Name, "etcd"), State: "unreachable", WorkerFloorMs: id.Floors.Worker, RequiredProtocol: uint32(id.Required),
			Etcd: &pb.EtcdMember{Version: m.Version, Leader: m.Leads(), SizeBytes: uint64(m.Size), InUseBytes: uint64(m.InUse), QuotaBytes: uint64(m.Quota),
				Alarms: m.Alarms, Prefix: f.prefix}}
		if left := time.Until(time.UnixMilli(int64(id.Floors.Worker))); left > 0 {
			st.WorkersKeptUs = uint64(left.Microseconds())
		}
		if strings.Contains(id.State, etcdstore.ErrRestored.Error()) {
			st.Etcd.Restored = id.State
		}
		if m.Err == nil {
			st.Reachable, st.State, st.Commits = true, etcdState(m, id), uint64(m.Revision)
			st.NearlyFull = m.Quota > 0 && m.Size > m.Quota/10*8
		}
		out = append(out, st)
	}
	return out
}

func etcdState(m etcdclient.Member, id quorum.Identity) string {
	switch {
	case !id.Voting:
		return id.State
	case len(m.Alarms) > 0:
		return fmt.Sprint("alarms: ", m.Alarms)
	case m.Leader == 0:
		return "knows no leader"
	}
	return "voting" // the state that clients look for to know that all is well
}

// describeStores asks every store for its state.
func describeStores(ctx context.Context, stores []storeclient.Named) []*pb.StoreStatus {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out, fellows := make([]*pb.StoreStatus, len(stores)), make([][]*pb.StoreMember, len(stores))
	var wg sync.WaitGroup
	for i, st := range stores {
		wg.Go(func() {
			out[i] = &pb.StoreStatus{Addr: st.Addr, Uuid: st.UUID, State: "unreachable"}
			asked := time.Now()
			id, err := st.Client.DescribeAll(ctx)
			if err != nil {
				if storeclient.Refused(err) {
					out[i].State = quorum.StateLeftOut + err.Error()
				}
				return
			}
			out[i].Uuid, out[i].Name, out[i].Reachable, out[i].State = id.GetStoreUuid(), id.GetName(), true, id.GetState()
			out[i].BootCount, out[i].Commits = id.GetBootCount(), id.GetCommits()
			out[i].GraceLeftMs = int64(id.GetGraceRemainingUs() / 1000)
			out[i].DiskFreeBytes, out[i].NearlyFull = id.GetDiskFreeBytes(), id.GetNearlyFull()
			out[i].Zone = id.GetZone()
			if at := id.GetTimeMs(); at != 0 { // the middle of the call is the best guess at when the store read its clock
				out[i].ClockAheadMs = proto.Int64(time.UnixMilli(at).Sub(asked.Add(time.Since(asked) / 2)).Milliseconds())
			}
			out[i].Protocol, out[i].RequiredProtocol = id.GetProtocol(), id.GetRequiredProtocol()
			for _, k := range id.GetKeptOut() {
				out[i].KeptOut = append(out[i].KeptOut, fmt.Sprintf("%s speaks %d", k.GetName(), k.GetProtocol()))
			}
			out[i].Refused = id.GetRefused()
			out[i].WorkerFloorMs, out[i].WorkersKeptUs = id.GetWorkerFloorMs(), id.GetWorkersKeptUs()
			fellows[i] = id.GetMembers()
		})
	}
	wg.Wait()
	for _, m := range slices.Concat(fellows...) { // the fellows know the addresses of members that did not answer
		for _, st := range out {
			if !st.GetReachable() && st.GetUuid() == m.GetUuid() {
				st.Zone = cmp.Or(st.GetZone(), m.GetZone())
			}
		}
	}
	return out
}
