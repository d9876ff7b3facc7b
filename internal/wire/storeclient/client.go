package storeclient

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Client is one store over gRPC. It is safe for concurrent use. Calls fail at once while
// the store is away; all may be repeated (the duties are at quorum.Store). A Follower moves it to
// another address if the store answers there.
type Client struct {
	at   atomic.Pointer[seat]
	uuid atomic.Pointer[string] // of the store, nil before its first reply
}

var _ quorum.Store = (*Client)(nil)

// seat is an address, and the connections to it.
type seat struct {
	addr   string
	conns  [2]*grpc.ClientConn
	calls  pb.StoreClient
	leases pb.StoreClient // Renew's own connection
	lines  lines
	alone  func(ctx context.Context) bool // of Alone; it may be nil
}

// Dial makes a client of the store at host:port without waiting for it. The options come
// after rpc.Dial's own.
func Dial(addr string, opts ...grpc.DialOption) (*Client, error) {
	for _, o := range opts {
		if t, ok := o.(through); ok {
			conn := t.dial(addr)
			return Over(addr, conn, conn), nil
		}
	}
	opts = append([]grpc.DialOption{grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(storewire.MaxReply), grpc.MaxCallSendMsgSize(storewire.MaxRequest))}, opts...)
	s := &seat{addr: addr}
	for _, o := range opts {
		if a, ok := o.(alone); ok {
			s.alone = a.is
		}
	}
	for i := range s.conns {
		conn, err := rpc.Dial(addr, opts...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("store client: %w", err), s.close())
		}
		s.conns[i] = conn
	}
	s.calls, s.leases = pb.NewStoreClient(s.conns[0]), pb.NewStoreClient(s.conns[1])
	return s.client(), nil
}

// Over returns a client that uses connections of the caller. The caller closes them and passes their errors
// through rpc.FromStatus. Only Renew uses leases.
func Over(addr string, calls, leases grpc.ClientConnInterface) *Client {
	return (&seat{addr: addr, calls: pb.NewStoreClient(calls), leases: pb.NewStoreClient(leases)}).client()
}

func (s *seat) client() *Client {
	c := &Client{}
	c.at.Store(s)
	return c
}

func (s *seat) close() error {
	s.lines.close()
	var errs []error
	for _, conn := range s.conns {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	return errors.Join(errs...)
}

// through is a grpc.DialOption that only Dial knows.
type through struct {
	grpc.EmptyDialOption
	dial func(addr string) grpc.ClientConnInterface
}

// Through has Dial, and with it Connect, Follower and all that pass options on to them,
// make clients as Over does, over what dial gives for an address: for callers that bring a
// network of their own. Other options then have no effect.
func Through(dial func(addr string) grpc.ClientConnInterface) grpc.DialOption {
	return through{dial: dial}
}

// Addr is the address of the store: the one given to Dial, or where a Follower found the store
// since.
func (c *Client) Addr() string { return c.at.Load().addr }

func (c *Client) calls() pb.StoreClient { return c.at.Load().calls }

// UUID is the store's uuid, empty before its first reply.
func (c *Client) UUID() string {
	if known := c.uuid.Load(); known != nil {
		return *known
	}
	return ""
}

// Close ends the connections and all calls in flight, their outcome unknown.
func (c *Client) Close() error { return c.at.Load().close() }

// meant names the store in the call, once it is known.
func (c *Client) meant(ctx context.Context) context.Context { return meant(ctx, c.UUID()) }

func meant(ctx context.Context, uuid string) context.Context {
	if uuid != "" {
		return metadata.AppendToOutgoingContext(ctx, storewire.StoreHeader, uuid)
	}
	return ctx
}

var errNoUUID = fmt.Errorf("%w: a reply without a store uuid", seq.ErrStaleEra)

// verify takes the uuid of the first reply and refuses every other one after it.
func (c *Client) verify(uuid string) error {
	if uuid == "" {
		return errNoUUID
	}
	if c.uuid.CompareAndSwap(nil, &uuid) {
		return nil
	}
	if known := c.UUID(); known != uuid {
		return fmt.Errorf("%w: store %s answers in place of %s", seq.ErrStaleEra, uuid, known)
	}
	return nil
}

// check is verify of a call that ended with err.
func (c *Client) check(op, uuid string, err error) error {
	if err == nil {
		err = c.verify(uuid)
	}
	if err != nil {
		return c.wrap(op, err)
	}
	return nil
}

// wrap names the operation and the store.
func (c *Client) wrap(op string, err error) error {
	return fmt.Errorf("%s at store %s: %w", op, c.Addr(), err)
}

// Describe asks the store for its identity. It works in every state of the store. Beside errors of the
// connection, it returns seq.ErrStaleEra if the store is not the same as before, and seq.ErrBadMapping.
func (c *Client) Describe(ctx context.Context) (quorum.Identity, error) {
	reply, err := c.calls().Describe(ctx, &pb.DescribeRequest{})
	return c.identity("describe", reply, err)
}

// who returns the identity of the store that is at the address now. It may be another store than the store
// of the Client.
func (c *Client) who(ctx context.Context) (quorum.Identity, error) {
	reply, err := c.calls().Describe(ctx, &pb.DescribeRequest{})
	var id quorum.Identity
	if err == nil {
		id, err = storewire.DescribeFromProto(reply)
	}
	if err == nil && id.UUID == "" {
		err = errNoUUID
	}
	if err != nil {
		return quorum.Identity{}, c.wrap("describe", err)
	}
	return id, nil
}

// Binding is what Bind tells a store.
type Binding struct {
	Cluster string
	Era     seq.Era
	Members []quorum.Member
	// Complete says that all members are bound, so the store may vote. It comes after a Bind that
	// did not say so at each of them.
	Complete bool
	Origin   seq.ClusterID // of stores that were restored; zero if none is known
}

// Bind tells the store its fellow members, durably, and gives its identity after that.
// Errors: seq.ErrForeignCluster, seq.ErrStaleEra for another era or if it is bound to
// others, seq.ErrBadArgument for a list that does not fit what init was told.
func (c *Client) Bind(ctx context.Context, b Binding) (quorum.Identity, error) {
	req := &pb.BindRequest{ClusterId: b.Cluster, Era: uint64(b.Era), Members: storewire.MembersToProto(b.Members), Step: pb.BindStep_BIND_STEP_BIND}
	if b.Complete {
		req.Step = pb.BindStep_BIND_STEP_COMPLETE
	}
	if !b.Origin.IsZero() {
		req.Origin = b.Origin[:]
	}
	reply, err := c.calls().Bind(c.meant(ctx), req)
	return c.identity("bind", reply, err)
}

// identity returns the identity in a reply. It fails if another store sent the reply.
func (c *Client) identity(op string, reply *pb.DescribeReply, err error) (id quorum.Identity, _ error) {
	if err == nil {
		id, err = storewire.DescribeFromProto(reply)
	}
	if err := c.check(op, id.UUID, err); err != nil {
		return quorum.Identity{}, err
	}
	return id, nil
}

// DescribeAll is Describe with everything that only operators read.
func (c *Client) DescribeAll(ctx context.Context) (*pb.DescribeReply, error) {
	reply, err := c.calls().Describe(ctx, &pb.DescribeRequest{})
	_, err = c.identity("describe", reply, err)
	return reply, err
}

// Adopt tells the store a member list that was decided, durably. Errors:
// seq.ErrForeignCluster, seq.ErrStaleEra if it has a newer one, seq.ErrNotVoting for a
// list that makes a voter of a store that is not filled, seq.ErrStoreFull.
func (c *Client) Adopt(ctx context.Context, cluster string, era seq.Era, list quorum.MemberList) (quorum.Identity, error) {
	reply, err := c.calls().Adopt(c.meant(ctx), &pb.AdoptRequest{ClusterId: cluster, Era: uint64(era), List: storewire.ListToProto(list)})
	return c.identity("adopt", reply, err)
}

// Extend tells the store a mapping that was decided, durably, and gives its identity after
// that. Errors: seq.ErrForeignCluster, seq.ErrStaleEra for another era, seq.ErrBadMapping for
// one that is not its own with spaces added, seq.ErrStoreFull. Safe to repeat.
func (c *Client) Extend(ctx context.Context, cluster string, era seq.Era, m seq.Mapping) (quorum.Identity, error) {
	reply, err := c.calls().Extend(c.meant(ctx), &pb.ExtendRequest{ClusterId: cluster, Era: uint64(era), Mapping: rpc.MappingToProto(m)})
	return c.identity("extend the mapping", reply, err)
}

// Vouch tells the store what its fellow stores remember of it, which were asked after it told
// the nonce of its start, and gives its identity after that. Errors: seq.ErrNotVoting if
// its disk turns out to be an old copy, seq.ErrForeignCluster.
func (c *Client) Vouch(ctx context.Context, cluster string, nonce uint64, claims []quorum.Claim) (quorum.Identity, error) {
	reply, err := c.calls().Vouch(c.meant(ctx), storewire.VouchToProto(cluster, nonce, claims))
	return c.identity("vouch", reply, err)
}

// WindowsOver tells the store, durably, that no process from before the restore holds a
// snowflake worker id or a window of one. Errors: seq.ErrForeignCluster, seq.ErrStaleEra,
// seq.ErrBadArgument without a reason, seq.ErrStoreFull. Safe to retry.
func (c *Client) WindowsOver(ctx context.Context, cluster string, era seq.Era, reason string) (*pb.DescribeReply, error) {
	reply, err := c.calls().WindowsOver(c.meant(ctx), &pb.WindowsOverRequest{ClusterId: cluster, Era: uint64(era), Reason: reason})
	_, err = c.identity("end the wait for windows", reply, err)
	return reply, err
}

// Dump reads everything that the store has on disk, whether or not it votes, and hands
// it to take in the order of the names. ref, if not zero, must be the store's own:
// seq.ErrStaleEra. An error means that it is not whole.
func (c *Client) Dump(ctx context.Context, ref quorum.Ref, take func([]quorum.RegisterState) error) (*pb.DescribeReply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req := &pb.DumpRequest{}
	if ref != (quorum.Ref{}) {
		req.Ref = storewire.RefToProto(ref)
	}
	stream, err := c.calls().Dump(ctx, req)
	if err != nil {
		return nil, c.wrap("dump", err)
	}
	var store *pb.DescribeReply
	for count := uint64(0); ; {
		reply, err := stream.Recv()
		if err != nil {
			return nil, c.wrap("dump", err)
		}
		if reply.GetStore() != nil {
			store = reply.GetStore()
			if _, err := c.identity("dump", store, nil); err != nil {
				return nil, err
			}
		}
		count += uint64(len(reply.GetRecords()))
		if err := take(storewire.RecordsFromProto(reply.GetRecords())); err != nil {
			return nil, err
		}
		if reply.GetLast() {
			if store == nil || count != reply.GetCount() {
				return nil, c.wrap("dump", fmt.Errorf("%w: %d records of %d", seq.ErrBadBatch, count, reply.GetCount()))
			}
			return store, nil
		}
	}
}

// Fill merges states of other stores into the store, durably, and says how many of them
// it did not have. complete says that a learner has everything with these. by is the
// secret of a session that never takes registers. Errors: seq.ErrStaleEra for another list,
// seq.ErrNotVoting, seq.ErrStoreFull, seq.ErrOverloaded in its grace. Safe to repeat.
func (c *Client) Fill(ctx context.Context, ref quorum.Ref, by seq.Secret, states []quorum.RegisterState, complete bool, bound time.Duration) (uint64, error) {
	key := by.Key()
	reply, err := c.calls().Fill(c.meant(ctx), &pb.FillRequest{Ref: storewire.RefToProto(ref), Session: uint64(by.Session()), Secret: key[:],
		Records: storewire.RecordsToProto(states), Complete: complete, LeaseBoundUs: uint64(bound.Microseconds())})
	return reply.GetChanged(), c.check("fill", reply.GetStoreUuid(), err)
}

// Read implements quorum.Store.
func (c *Client) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	at := c.at.Load()
	reply, err := at.read(ctx, req)
	if errors.Is(err, errCalls) {
		reply, err = at.calls.Read(c.meant(ctx), storewire.ReadToProto(req))
	}
	// A read by prefix has as many results as there are registers.
	return c.results("read", reply, err, len(req.Registers), len(req.Registers) == 0)
}

// Prepare implements quorum.Store.
func (c *Client) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	reply, err := c.calls().Prepare(c.meant(ctx), storewire.PrepareToProto(req))
	return c.results("prepare", reply, err, len(req.Items), false)
}

// Step implements quorum.Store.
func (c *Client) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	at := c.at.Load()
	reply, err := at.step(ctx, req, c.UUID())
	if errors.Is(err, errCalls) {
		reply, err = at.calls.Step(c.meant(ctx), storewire.StepToProto(req))
	}
	return c.results("step", reply, err, len(req.Items), false)
}

func (c *Client) results(op string, r *pb.ResultsReply, err error, want int, anyNumber bool) (quorum.Reply, error) {
	if err == nil {
		err = c.verify(r.GetStoreUuid())
	}
	var reply quorum.Reply
	if err == nil {
		reply, err = storewire.ReplyFromProto(r)
	}
	if got := len(reply.Results); err == nil && got != want && !anyNumber {
		err = fmt.Errorf("%w: %d results for %d items", seq.ErrBadBatch, got, want)
	}
	if err != nil {
		return quorum.Reply{}, c.wrap(op, err)
	}
	return reply, nil
}

// Renew implements quorum.Store, on a connection of its own.
func (c *Client) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	reply, err := c.at.Load().leases.Renew(c.meant(ctx), storewire.RenewToProto(req))
	if err := c.check("renew", reply.GetStoreUuid(), err); err != nil {
		return quorum.RenewReply{}, err
	}
	return storewire.RenewReplyFromProto(reply), nil
}

// Release implements quorum.Store.
func (c *Client) Release(ctx context.Context, req quorum.ReleaseRequest) (uuid string, err error) {
	reply, err := c.calls().Release(c.meant(ctx), storewire.ReleaseToProto(req))
	if err := c.check("release", reply.GetStoreUuid(), err); err != nil {
		return "", err
	}
	return reply.GetStoreUuid(), nil
}
