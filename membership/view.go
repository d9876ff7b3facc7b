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

	"github.com/seqsvr/seqsvr/seq"
)

// leaveTimeout bounds how long Leave lets the goodbye spread: many gossip intervals
// of the fast profile, and short enough that a cluster that stops as a whole, where
// nobody is left to listen, does not keep people waiting.
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
	wg     sync.WaitGroup // the rejoin loop, memberlist's Leave
	once   sync.Once      // Close

	publishMu sync.Mutex // guards departed, and serialises memberlist's UpdateNode, which is not safe beside itself
	departed  bool       // Leave or Close was called: memberlist forgets its own node afterwards

	mu     sync.Mutex // guards everything below
	roster *roster
	meta   Meta
	rejoin rejoinState

	strangers strangers
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
		roster: newRoster(cfg.Name, keepGone), strangers: strangers{},
		rejoin: rejoinState{seeds: slices.Clone(cfg.Join), started: time.Now()},
	}
	v.notices = &memberlist.TransmitLimitedQueue{
		NumNodes:       func() int { return int(v.others.Load()) + 1 },
		RetransmitMult: mc.RetransmitMult,
	}
	d := delegate{v}
	mc.Delegate, mc.Events, mc.Conflict, mc.Alive, mc.Merge = d, d, d, d, d
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

// Members returns all members by name, this node among them, with those that died or left within ten
// minutes. After Close it returns the last view.
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
	return max(v.meta.TableVersion, v.roster.highest(v.meta.Incarnation))
}

// LaterEra reports whether a live AllocSvr is of a later era of this cluster. Its tables count from the
// beginning, so HighestTableVersion says nothing of them.
func (v *View) LaterEra() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.roster.laterEra(v.meta.Incarnation)
}

// Strangers returns how many addresses were heard lately of nodes of another cluster that has this one's name.
func (v *View) Strangers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, at := range v.strangers {
		if time.Since(at) < 2*conflictRepeat {
			n++
		}
	}
	return n
}

// KeyFaults returns the number of packets and streams that this node could not read with its keys, or that
// were not encrypted although it has keys; see ErrKeysDiffer.
func (v *View) KeyFaults() uint64 { return v.faults.total() }

// SetTableVersion spreads the version of the newest route table this node holds. Lower values than the
// last are passed over. It does not wait for the network, and does nothing after Leave or Close.
func (v *View) SetTableVersion(version uint64) {
	v.publishMu.Lock()
	defer v.publishMu.Unlock()
	if v.departed || !v.raise(version) {
		return
	}
	// The timeout only bounds the wait for the spreading, which nobody here needs, so the error says nothing.
	_ = v.ml.UpdateNode(time.Nanosecond)
}

// SetIncarnation spreads the life of the cluster once the process knows it, or has gone over to a later era.
// The table version begins again with a later era. It does nothing after Leave or Close.
func (v *View) SetIncarnation(life seq.Incarnation) {
	v.publishMu.Lock()
	defer v.publishMu.Unlock()
	v.mu.Lock()
	changed := v.meta.Incarnation != life
	if changed && v.meta.Incarnation.Newer(life) {
		v.meta.TableVersion = 0
	}
	v.meta.Incarnation = life
	v.mu.Unlock()
	if changed && !v.departed {
		_ = v.ml.UpdateNode(time.Nanosecond)
	}
}

// raise notes a table version above the last; fits left room for it.
func (v *View) raise(version uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if version <= v.meta.TableVersion {
		return false
	}
	v.meta.TableVersion = version
	return true
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
		// The rejoin loop and memberlist's Leave end first: both call into a running memberlist.
		v.wg.Wait()
		err = v.ml.Shutdown()
	})
	if err != nil {
		return fmt.Errorf("close membership of %q: %w", v.cfg.Name, err)
	}
	return nil
}
