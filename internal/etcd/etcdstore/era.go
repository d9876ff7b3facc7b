package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Contents is what is below a prefix, all at one revision of etcd.
type Contents struct {
	Cluster  string
	UUID     string
	Era      seq.Era
	OldestOf seq.Era // of the registers: Era, or an earlier one where a restore in place was interrupted
	Mapping  seq.Mapping
	Floors   quorum.Floors
	Required int   // protocol that sessions must speak; zero means any
	Trouble  error // the error of Open, if no Store can be opened on it
	// Incarnation is the life of the cluster that a Store tells.
	Incarnation seq.Incarnation
	Revision    int64
	Sessions    []LiveSession          // in no order
	States      []quorum.RegisterState // by name; of Load only

	at   known
	etcd uint64 // etcd's id of itself now
}

// LiveSession is a session that has a key.
type LiveSession struct {
	ID    seq.Session   `json:"id"`
	Name  string        `json:"name"`
	Addr  string        `json:"addr"`
	Lease time.Duration `json:"lease_ns"`
}

// Look reads who is below the prefix, also where Open refuses: ErrNotInitialized for none,
// ErrDamaged, seq.ErrBadArgument, and the errors of KV.
func Look(ctx context.Context, kv KV, prefix string) (Contents, error) {
	return load(ctx, kv, prefix, false)
}

// Load is Look, and reads all registers, in one answer: some 0.2 kB each.
func Load(ctx context.Context, kv KV, prefix string) (Contents, error) {
	return load(ctx, kv, prefix, true)
}

func load(ctx context.Context, kv KV, prefix string, registers bool) (Contents, error) {
	k, err := newKeys(prefix)
	if err != nil {
		return Contents{}, err
	}
	ask := Txn{Then: []Op{get(k.meta()), all(k.sessions())}}
	if registers {
		ask.Then = append(ask.Then, all(k.registers()), all(k.bodies()))
	}
	a, err := kv.Do(ctx, ask)
	if err != nil {
		return Contents{}, err
	}
	m, err := readMeta(a)
	if err != nil {
		return Contents{}, fmt.Errorf("read etcd below %s: %w", prefix, err)
	}
	c := Contents{Cluster: m.Cluster, UUID: m.UUID, Era: m.Era, OldestOf: m.oldest(), Mapping: seq.Mapping{Spaces: m.Spaces}, Floors: m.Floors, Incarnation: m.incarnation(), Required: m.Required,
		Trouble: m.usable(a.Cluster), Revision: a.Revision, at: m, etcd: a.Cluster}
	for _, kv := range a.Results[1].KVs {
		id, err := k.sessionOf(kv.Key)
		var s session
		if err == nil {
			err = decode(kv, &s)
		}
		if err != nil {
			return Contents{}, err
		}
		c.Sessions = append(c.Sessions, LiveSession{ID: id, Name: s.Name, Addr: s.Addr, Lease: s.Lease})
	}
	if registers {
		c.States, err = states(k, a.Results[2].KVs, a.Results[3].KVs)
	}
	return c, err
}

// oldest is the oldest era that a register may be of.
func (m meta) oldest() seq.Era {
	if m.Before != nil {
		return *m.Before
	}
	return m.Era
}

func states(k keys, registers, bodies []KeyValue) ([]quorum.RegisterState, error) {
	payloads := make(map[string][]byte, len(bodies))
	for _, kv := range bodies {
		body, err := open(kv)
		if err != nil {
			return nil, err
		}
		payloads[strings.TrimPrefix(kv.Key, k.bodies())] = body
	}
	out := make([]quorum.RegisterState, len(registers))
	for i, kv := range registers {
		r, err := decodeRegister(kv)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(kv.Key, k.registers())
		out[i] = quorum.RegisterState{Register: seq.Register(name), Promised: r.promised, Accepted: r.accepted, Max: r.max,
			Payload: payloads[name], PayloadMax: r.bodyMax}
	}
	return out, nil
}

// NewEra is an order for a cluster of a later era, in which every register is raised above what
// was handed out before. Nothing serves until it is done. One that was interrupted is given again,
// with the same era or a later one: what was raised already is raised once more.
type NewEra struct {
	Prefix  string
	Cluster string
	Era     seq.Era           // above every one that the cluster has had
	Told    func(what string) // if non-nil, it is called with each step of progress
}

// Beginning is what an era begins with.
type Beginning struct {
	Mapping seq.Mapping
	Floors  quorum.Floors
	States  []quorum.RegisterState // of every register, raised, under epochs of no session
	// LeaseBound is the longest lease of the era before: nothing is opened before that time is over,
	// from when none of them is renewed any more.
	LeaseBound time.Duration
	Required   int // protocol that sessions must speak; zero means any. Raise keeps the cluster's own
	// Origin is the id of the cluster that was saved. If zero, Make begins another cluster; Raise keeps the id.
	Origin seq.ClusterID
}

// check says what cannot be kept in etcd.
func (b Beginning) check() error {
	if b.Mapping.HasExact() {
		return fmt.Errorf("%w: restore them on StoreSvr", ErrNoExact)
	}
	for _, st := range b.States {
		if n := len(st.Payload); n > MaxPayload {
			return fmt.Errorf("%w: %s has %d bytes, expected at most %d on etcd", seq.ErrBadArgument, st.Register, n, MaxPayload)
		}
	}
	return nil
}

// Make makes the cluster below a prefix that has none. Beside the errors of KV it returns ErrInitialized,
// ErrRestored, seq.ErrForeignCluster, ErrNoExact and seq.ErrBadArgument.
func (o NewEra) Make(ctx context.Context, kv KV, b Beginning) error {
	k, err := newKeys(o.Prefix)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return err
	}
	want := meta{UUID: uuid.NewString(), Cluster: o.Cluster, Era: o.Era, Spaces: b.Mapping.Spaces, Making: true, Origin: b.Origin, Required: b.Required}
	want.Poison = want.gate()
	if want, err = claim(ctx, kv, k, want); err != nil {
		return fmt.Errorf("make era %d below %s: %w", o.Era, o.Prefix, err)
	}
	at, err := fetchMeta(ctx, kv, k)
	if err != nil {
		return err
	}
	switch {
	case at.Before != nil:
		return fmt.Errorf("make era %d below %s: %w: a restore in place was interrupted", o.Era, o.Prefix, ErrInitialized)
	case at.UUID != want.UUID || !at.Making:
		return errRace
	}
	return o.finish(ctx, kv, k, at, nil, b, time.Now())
}

// Raise begins a new era of the cluster below the prefix, whatever its etcd has lost. raise derives the
// Beginning from the contents. Raise calls it again when nothing writes there any more. Processes of the
// era before stop at their next write. Beside the errors of raise and Load, Raise returns
// seq.ErrForeignCluster, ErrNoExact and seq.ErrBadArgument.
func (o NewEra) Raise(ctx context.Context, kv KV, raise func(Contents) (Beginning, error)) error {
	before, err := Load(ctx, kv, o.Prefix)
	if err != nil {
		return err
	}
	if before.Cluster != o.Cluster {
		return fmt.Errorf("%w: cluster %q is below %s, not %q", seq.ErrForeignCluster, before.Cluster, o.Prefix, o.Cluster)
	}
	if o.Era < before.Era {
		return fmt.Errorf("%w: era %d after %d, which was begun there and not finished", seq.ErrStaleEra, o.Era, before.Era)
	}
	b, err := raise(before)
	if err == nil {
		err = b.check()
	}
	if err != nil {
		return err
	}
	k := keys{strings.TrimRight(o.Prefix, "/") + "/"}
	next := before.at.meta
	origin := next.incarnation().Cluster
	next.Era, next.Etcd, next.Making, next.Poison = o.Era, before.etcd, true, ""
	next.Before = &before.OldestOf
	drawn := uuid.New()
	next.Origin, next.Binding = origin, seq.ClusterIDOf(drawn[:])
	next.Poison = next.gate()
	if err := replaceMeta(ctx, kv, k, known{next, before.at.rev}); err != nil {
		return fmt.Errorf("begin era %d below %s: %w", o.Era, o.Prefix, err)
	}
	stopped := time.Now()
	now, err := Load(ctx, kv, o.Prefix)
	if err != nil {
		return err
	}
	if now.at.UUID != before.UUID || now.at.Era != o.Era || !now.at.Making {
		return fmt.Errorf("begin era %d below %s: %w", o.Era, o.Prefix, errRace)
	}
	if b, err = raise(now); err != nil {
		return err
	}
	return o.finish(ctx, kv, k, now.at, now.Sessions, b, stopped)
}

// replaceMeta replaces the meta of revision next.rev. It may be done twice: if the new meta is there
// already, that is no error.
func replaceMeta(ctx context.Context, kv KV, k keys, next known) error {
	value := encode(k.meta(), next.meta)
	a, err := kv.Do(ctx, Txn{If: []Compare{modified(k.meta(), next.rev)}, Then: []Op{put(k.meta(), value)}, Else: []Op{get(k.meta())}})
	if err == nil && !a.Then && (len(a.Results[0].KVs) == 0 || !bytes.Equal(a.Results[0].KVs[0].Value, value)) {
		return errRace
	}
	return err
}

// finish fills an era that was begun, waits for the leases of the one before, and opens it.
func (o NewEra) finish(ctx context.Context, kv KV, k keys, at known, sessions []LiveSession, b Beginning, stopped time.Time) error {
	mine := modified(k.meta(), at.rev)
	if err := o.fill(ctx, kv, k, mine, b.States); err != nil {
		return fmt.Errorf("fill era %d below %s: %w", o.Era, o.Prefix, err)
	}
	over := b.LeaseBound + time.Duration(2*quorum.Rho*float64(b.LeaseBound))
	if left := over - time.Since(stopped); left > 0 {
		o.tell(fmt.Sprintf("waiting %v for leases of the era before", left.Round(time.Second)))
		if !wake.Sleep(ctx, left) {
			return context.Cause(ctx)
		}
	}
	if err := forget(ctx, kv, k, mine, sessions); err != nil {
		return err
	}
	at.Making, at.Before, at.Floors = false, nil, b.Floors
	at.Poison = at.gate()
	return replaceMeta(ctx, kv, k, at)
}

func (o NewEra) tell(what string) {
	if o.Told != nil {
		o.Told(what)
	}
}

// fill writes every register, and the fixed ones that are missing.
func (o NewEra) fill(ctx context.Context, kv KV, k keys, mine Compare, states []quorum.RegisterState) error {
	states = slices.Clone(states)
	for _, r := range seq.FixedRegisters() {
		if !slices.ContainsFunc(states, func(st quorum.RegisterState) bool { return st.Register == r }) {
			states = append(states, quorum.RegisterState{Register: r})
		}
	}
	o.tell(fmt.Sprintf("writing %d registers", len(states)))
	t, size := Txn{If: []Compare{mine}}, 0
	send := func() error {
		if len(t.Then) == 0 {
			return nil
		}
		err := mustThen(kv.Do(ctx, t))
		t.Then, size = nil, 0
		return err
	}
	for _, st := range states {
		ops := begins(k, st)
		n := 0
		for _, op := range ops {
			n += len(op.Key) + len(op.Value) + 64
		}
		if len(t.Then)+len(ops) > maxItems || size+n > maxBytes {
			if err := send(); err != nil {
				return err
			}
		}
		t.Then, size = append(t.Then, ops...), size+n
	}
	return send()
}

// begins puts a register as a new era has it first: kept for no session.
func begins(k keys, st quorum.RegisterState) []Op {
	key := k.register(st.Register)
	ops := []Op{put(key, register{promised: st.Promised, accepted: st.Accepted, max: st.Max, bodyMax: st.PayloadMax}.encode(key))}
	if st.Register.HasPayload() && len(st.Payload) > 0 {
		body := k.body(st.Register)
		ops = append(ops, put(body, seal(body, st.Payload)))
	}
	return ops
}

// forget removes sessions of the era before, so that nodes of their names need not wait for them.
func forget(ctx context.Context, kv KV, k keys, mine Compare, sessions []LiveSession) error {
	for part := range slices.Chunk(sessions, maxItems) {
		t := Txn{If: []Compare{mine}}
		for _, s := range part {
			t.Then = append(t.Then, remove(k.session(s.ID)))
		}
		if err := mustThen(kv.Do(ctx, t)); err != nil {
			return err
		}
	}
	return nil
}

// WindowsOver takes an operator's word that no process from before the last restore has a window
// of a worker id: the floor of worker ids, which it returns, falls to that moment. It never rises.
func WindowsOver(ctx context.Context, kv KV, prefix string, to time.Time) (floor time.Time, err error) {
	c, err := Look(ctx, kv, prefix)
	if err == nil {
		err = c.Trouble
	}
	if err != nil {
		return time.Time{}, err
	}
	lower := uint64(max(0, to.UnixMilli()))
	if c.Floors.Worker > lower {
		c.at.Floors.Worker = lower
		err = replaceMeta(ctx, kv, keys{strings.TrimRight(prefix, "/") + "/"}, c.at)
	}
	return time.UnixMilli(int64(c.at.Floors.Worker)), err
}
