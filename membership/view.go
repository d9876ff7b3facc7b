//go:build !wasip1

package membership

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// leaveTimeout bounds how long Leave lets the goodbye spread: many gossip intervals
// of the fast profile, and short enough that a cluster that stops as a whole, where
// no member is left to listen, does not keep people waiting.
const leaveTimeout = 500 * time.Millisecond

// View is a running node's picture of the cluster. All methods are safe for concurrent use.
//
// Order of locks: publishMu, then memberlist's own, then mu. memberlist calls the delegates under its
// lock and they take mu, so nothing calls memberlist while holding mu.
type View struct {
	cfg     Config
	log     *slog.Logger
	ml      *memberlist.Memberlist
	addr    string
	notices *memberlist.TransmitLimitedQueue
	faults  *keyFaults
	others  atomic.Int64 // live members besides this node, for the retransmit count

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // the rejoin loop, the watchers, memberlist's Leave
	once   sync.Once      // Close

	publishMu sync.Mutex // guards departed, and serialises memberlist's UpdateNode, which is not safe beside itself
	departed  bool       // Leave or Close was called: memberlist forgets its own node afterwards

	mu       sync.Mutex // guards everything below
	roster   *roster
	meta     Meta
	watchers map[*watcher]struct{}
	closed   bool // Close was called: no new watchers
	rejoin   rejoinState
}

// Start binds the address, announces the node and begins joining the seeds in the background: it does
// not wait for them, and a node without reachable seeds runs alone until one answers. Errors are
// ErrConfig, ErrUnknownRole, ErrUnknownProfile, ErrMetaTooLarge, or the system's when the address is taken.
func Start(cfg Config) (*View, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start membership of %q: %w", cfg.Name, err)
	}
	if cfg.Meta.Session == 0 {
		cfg.Meta.Session = randomSession()
		if err := cfg.Meta.fits(); err != nil {
			return nil, fmt.Errorf("start membership of %q: %w", cfg.Name, err)
		}
	}
	faults := &keyFaults{log: cfg.Logger, keys: cfg.Keys}
	mc, err := cfg.memberlistConfig(faults)
	if err != nil {
		return nil, fmt.Errorf("start membership of %q: %w", cfg.Name, err)
	}
	v := &View{
		cfg: cfg, log: cfg.Logger, meta: cfg.Meta, faults: faults,
		roster:   newRoster(cfg.Name, cfg.KeepGone),
		watchers: map[*watcher]struct{}{},
		rejoin:   rejoinState{seeds: slices.Clone(cfg.Join), started: time.Now()},
	}
	v.notices = &memberlist.TransmitLimitedQueue{
		NumNodes:       func() int { return int(v.others.Load()) + 1 },
		RetransmitMult: mc.RetransmitMult,
	}
	d := delegate{v}
	mc.Delegate, mc.Events, mc.Conflict = d, d, d
	v.ctx, v.cancel = context.WithCancel(context.Background())
	if v.ml, err = memberlist.Create(mc); err != nil {
		v.cancel()
		return nil, fmt.Errorf("start membership of %q on %s: %w", cfg.Name, cfg.BindAddr, err)
	}
	v.addr = v.ml.LocalNode().Address()
	v.log.Info("membership started", "node", cfg.Name, "cluster", cfg.ClusterID, "addr", v.addr, "profile", cfg.Profile.String(), "keys", cfg.Keys.Names())
	v.wg.Go(v.rejoinLoop)
	return v, nil
}

// randomSession is never zero.
func randomSession() uint64 {
	var b [8]byte
	for {
		rand.Read(b[:])
		if s := binary.LittleEndian.Uint64(b[:]); s != 0 {
			return s
		}
	}
}

// Addr returns the advertised gossip address as host:port, fit for another node's Config.Join.
func (v *View) Addr() string { return v.addr }

// Self returns the node's own metadata as last set, with its session.
func (v *View) Self() Meta {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.meta
}

// Members returns all members by name, this node among them, with those that died or left within
// Config.KeepGone. After Close it returns the last view.
func (v *View) Members() []Member {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.roster.snapshot(time.Now())
}

// HighestTableVersion returns the largest route table version any live member, or this node, holds. A
// hint: compare it with one's own and fetch the table from a member that has it. It may fall.
func (v *View) HighestTableVersion() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(v.meta.TableVersion, v.roster.highest())
}

// KeyFaults is how many packets and streams came that this node could not read for its keys, or that were
// not encrypted though it has some; see ErrKeysDiffer.
func (v *View) KeyFaults() uint64 { return v.faults.total() }

// SetTableVersion spreads the version of the newest route table this node holds. Lower values than the
// last are passed over. It does not wait for the network, and does nothing after Leave or Close.
func (v *View) SetTableVersion(version uint64) {
	// Raising the version alone can fail only after Leave or Close: fits left room for it.
	_ = v.update(func(m *Meta) { m.TableVersion = version })
}

// UpdateMeta changes the node's metadata and spreads it, without waiting for the network. The change
// works on a copy and must not call the View. ErrMetaFixed refuses a new name, role or session,
// ErrMetaTooLarge an encoding over MaxMetaSize, ErrClosed a call after Leave or Close; after an error
// nothing changed. A lower table version is raised to the present one.
func (v *View) UpdateMeta(change func(*Meta)) error {
	if err := v.update(change); err != nil {
		return fmt.Errorf("update metadata of %q: %w", v.cfg.Name, err)
	}
	return nil
}

// update stores the change and announces it. The timeout of UpdateNode only bounds its wait for the
// spreading, which is not needed here, so its error says nothing.
func (v *View) update(change func(*Meta)) error {
	v.publishMu.Lock()
	defer v.publishMu.Unlock()
	if v.departed {
		return ErrClosed
	}
	changed, err := v.setMeta(change)
	if changed {
		_ = v.ml.UpdateNode(time.Nanosecond)
	}
	return err
}

func (v *View) setMeta(change func(*Meta)) (changed bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.meta
	change(&m)
	if m.Name != v.meta.Name || m.Role != v.meta.Role || m.Session != v.meta.Session {
		return false, ErrMetaFixed
	}
	m.TableVersion = max(m.TableVersion, v.meta.TableVersion)
	if m == v.meta {
		return false, nil
	}
	if err := m.fits(); err != nil {
		return false, err
	}
	v.meta = m
	return true, nil
}

// Watch calls fn for every change from now on, in order and one at a time, after one EventJoined for
// each member alive at this moment. fn runs on a goroutine of its own and may take its time: it never
// holds up the gossip, but beyond 4096 waiting events they are dropped for one EventLagged. fn may call
// the View except Close. The returned stop ends the calls; one in progress may outlast it.
func (v *View) Watch(fn func(Event)) (stop func()) {
	w := newWatcher(fn)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return func() {}
	}
	now := time.Now()
	for _, m := range v.roster.snapshot(now) {
		if m.State == StateAlive {
			w.push(Event{Kind: EventJoined, At: now, Member: m})
		}
	}
	v.watchers[w] = struct{}{}
	v.wg.Go(w.run)
	return func() {
		w.stop()
		v.mu.Lock()
		delete(v.watchers, w)
		v.mu.Unlock()
	}
}

// emit hands an event to the observers in the order of the roster's changes; the caller holds mu.
func (v *View) emit(ev Event) {
	v.others.Store(int64(v.roster.others()))
	for w := range v.watchers {
		w.push(ev)
	}
}

// Leave says goodbye, so that the others list this node as left instead of dead, and waits until the
// notice went out, at most until ctx ends or about ten seconds. An error means that some members may
// see the node as dead; it has left all the same. The View goes on watching until Close. A second call
// returns ErrClosed.
//
// The notice goes first: a member that hears memberlist's own message before it would report a death.
func (v *View) Leave(ctx context.Context) error {
	v.publishMu.Lock()
	if v.departed {
		v.publishMu.Unlock()
		return fmt.Errorf("leave as %q: %w", v.cfg.Name, ErrClosed)
	}
	v.departed = true
	// Counted under publishMu, so that Close, which takes it, cannot shut memberlist down before its
	// Leave below has begun: it would panic.
	v.wg.Add(1)
	v.publishMu.Unlock()

	err := v.sayGoodbye(ctx)
	left := make(chan error, 1)
	go func() {
		defer v.wg.Done()
		left <- v.ml.Leave(leaveTimeout)
	}()
	select {
	case e := <-left:
		err = errors.Join(err, e)
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("leave as %q: %w", v.cfg.Name, err)
	}
	return nil
}

// sayGoodbye spreads the departure notice and waits until it was sent as often as gossip asks for.
func (v *View) sayGoodbye(ctx context.Context) error {
	v.mu.Lock()
	d := departure{v.cfg.Name, v.meta.Session}
	v.roster.notice(d, time.Now())
	alone := v.roster.others() == 0
	v.mu.Unlock()
	b := newNotice(d)
	v.notices.QueueBroadcast(b)
	if alone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	select {
	case <-b.sent:
		return nil
	case <-v.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("spread the departure notice: %w", ctx.Err())
	}
}

// Close stops the gossip without a goodbye: unless Leave was called before, the others see this node
// die. It waits for the View's goroutines, of which a seed being dialled may take the profile's stream
// timeout (2 s for fast, 10 s for lan, 30 s for wan). A second call waits for the first and returns nil.
func (v *View) Close() error {
	var err error
	v.once.Do(func() {
		v.publishMu.Lock()
		v.departed = true
		v.publishMu.Unlock()
		v.cancel()
		v.mu.Lock()
		v.closed = true
		for w := range v.watchers {
			w.stop()
		}
		v.mu.Unlock()
		// The rejoin loop and memberlist's Leave end first: both call into a running memberlist.
		v.wg.Wait()
		err = v.ml.Shutdown()
	})
	if err != nil {
		return fmt.Errorf("close membership of %q: %w", v.cfg.Name, err)
	}
	return nil
}
