package etcdstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// Each history is three processes that take three sections from each other for a while.
const (
	histories  = 60
	span       = 40 * time.Second
	randLease  = time.Second
	randPrefix = "/random"
)

var randSections = []seq.Register{seq.SectionRegister(0), seq.SectionRegister(1), seq.SectionRegister(2)}

func TestRandomHistoriesBreakNoPromise(t *testing.T) {
	for seed := range uint64(histories) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { runHistory(t, seed) })
		})
	}
}

// world is one history.
type world struct {
	t     *testing.T
	etcd  *etcdmodel.Etcd
	clock bubble.Clock

	mu     sync.Mutex // guards all below
	rng    *rand.Rand
	until  time.Time // an outage of etcd
	last   map[seq.Register]uint64
	ended  map[string]bool // sessions, by the name in their keys; guarded by the lock of etcd
	nodes  []*process
	served int
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

func (w *world) upTo(d time.Duration) time.Duration {
	return time.Duration(1 + w.draw(int(d)))
}

func runHistory(t *testing.T, seed uint64) {
	w := &world{t: t, etcd: etcdmodel.New(7), clock: bubble.NewClock(), rng: rand.New(rand.NewPCG(seed, 18)), last: map[seq.Register]uint64{}, ended: map[string]bool{}}
	err := etcdstore.Init(t.Context(), &etcdmodel.Client{Etcd: w.etcd}, etcdstore.InitConfig{Prefix: randPrefix, Cluster: "random",
		Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: uint32(len(randSections))}}})
	if err != nil {
		t.Fatal(err)
	}
	w.etcd.OnChange(w.changed)
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 3 {
		p := &process{w: w, name: fmt.Sprintf("node-%d", i+1), rate: 1 + quorum.Rho*float64(w.draw(199)-99)/100, holds: map[seq.Register]*held{}}
		w.nodes = append(w.nodes, p)
		wg.Go(func() { p.run(ctx) })
	}
	wg.Go(func() { w.trouble(ctx) })
	wg.Wait()
	w.etcd.SetFull(false)
	t.Logf("%d numbers, revision %d", w.served, w.etcd.Revision())
	if w.served == 0 {
		t.Error("nothing was handed out in the whole history")
	}
}

// changed checks each change of a key.
func (w *world) changed(key string, old, now []byte) {
	part, name, _ := strings.Cut(strings.TrimPrefix(key, randPrefix+"/"), "/")
	switch part {
	case "r":
		w.changedRegister(key, old, now)
	case "ended":
		w.ended[name] = w.ended[name] || now != nil
	case "s":
		if w.ended[name] && old == nil {
			w.t.Errorf("session %s was made after it had ended", name)
		}
	}
}

func (w *world) changedRegister(key string, old, now []byte) {
	after, err := etcdstore.Show(etcdstore.KeyValue{Key: key, Value: now})
	if err != nil {
		w.t.Errorf("%q: %v", key, err)
		return
	}
	var before etcdstore.Shown
	if old != nil {
		before, _ = etcdstore.Show(etcdstore.KeyValue{Key: key, Value: old})
	}
	if after.Promised.Less(before.Promised) || after.Max < before.Max || after.Promised.Less(after.Accepted) {
		w.t.Errorf("%q went from %+v to %+v", key, before, after)
	}
}

// trouble makes outages and fills etcd up.
func (w *world) trouble(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.upTo(6 * time.Second))
		switch w.draw(3) {
		case 0: // an election, or a stuck leader
			w.mu.Lock()
			w.until = time.Now().Add(time.Duration(w.rng.IntN(int(3 * randLease))))
			w.mu.Unlock()
		case 1:
			w.etcd.SetFull(true)
			time.Sleep(w.upTo(3 * randLease))
			w.etcd.SetFull(false)
		}
	}
}

// fate draws the fate of a message of any process.
func (w *world) fate(t etcdstore.Txn) etcdmodel.Fate {
	const usual = 4 * time.Millisecond
	f := etcdmodel.Fate{There: w.upTo(usual), Back: w.upTo(usual)}
	switch w.draw(40) {
	case 0:
		f.There = w.upTo(3 * randLease) // long under way
	case 1:
		f.Back = w.upTo(3 * randLease)
	case 2:
		f.Never = true
	case 3:
		f.Mute = true
	case 4:
		f.Twice = w.upTo(3 * randLease)
	case 5:
		f.Mute, f.Twice = true, w.upTo(2*randLease)
	case 6:
		f.Despite = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait := time.Until(w.until); wait > 0 {
		f.There += wait
		f.Mute = f.Mute || w.rng.IntN(2) == 0 // the leader that has gone
	}
	return f
}

// process is one node of a history, of one session after the other.
type process struct {
	w    *world
	name string
	rate float64
	made time.Time

	mu     sync.Mutex // guards holds, and secret where others read it
	holds  map[seq.Register]*held
	secret seq.Secret
	group  *quorum.Group
	leases *quorum.Leases
	ref    quorum.Ref
}

type held struct {
	hold          *quorum.Hold
	next, ceiling uint64 // numbers in [next, ceiling] may be handed out
}

// Now is the clock of the process, which goes at its own rate.
func (p *process) Now() time.Duration {
	return time.Hour + time.Duration(float64(p.w.clock.Now())*p.rate)
}

// run lives one session after the other: they end in order, or by a crash.
func (p *process) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(ctx, 2*time.Second+p.w.upTo(15*time.Second))
		p.session(life)
		end()
		time.Sleep(p.w.upTo(time.Second))
	}
}

func (p *process) session(ctx context.Context) {
	store, err := etcdstore.Open(ctx, etcdstore.Config{KV: &etcdmodel.Client{Etcd: p.w.etcd, Fate: p.w.fate}, Prefix: randPrefix, Clock: p, MaxLease: randLease})
	if err != nil {
		if ctx.Err() == nil {
			p.w.t.Errorf("open: %v", err)
		}
		return
	}
	p.mu.Lock()
	p.secret = seq.NewSecret(p.name)
	p.mu.Unlock()
	id := store.Identity()
	stores := []quorum.NamedStore{{Name: "etcd", UUID: id.UUID, Store: store}}
	p.ref = id.Ref
	if p.group, err = quorum.NewGroup(quorum.Config{Ref: id.Ref, N: 1, R: 1, W: 1, Secret: p.secret, Timeout: 600 * time.Millisecond}, stores); err != nil {
		p.w.t.Fatal(err)
	}
	defer p.group.Close()
	leases, err := quorum.NewLeases(quorum.LeaseConfig{Ref: id.Ref, Session: p.secret.Session(), Secret: p.secret, Name: p.name, Addr: p.name,
		Lease: randLease, N: 1, W: 1, Clock: p}, stores)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.mu.Lock()
	p.leases, p.holds = leases, map[seq.Register]*held{}
	p.mu.Unlock()
	renewing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = leases.Run(renewing) })
	for ctx.Err() == nil {
		p.act(ctx)
		time.Sleep(p.w.upTo(40 * time.Millisecond))
	}
	p.leave(stop)
	wg.Wait()
}

// leave ends the session in order, or not at all. A process that is gone serves nothing.
func (p *process) leave(stop func()) {
	p.mu.Lock()
	clear(p.holds)
	p.mu.Unlock()
	stop()
	if p.w.draw(2) == 0 {
		_ = p.group.EndSession(context.WithoutCancel(p.w.t.Context()), p.secret)
	}
}

func (p *process) act(ctx context.Context) {
	r := randSections[p.w.draw(len(randSections))]
	p.mu.Lock()
	h := p.holds[r]
	p.mu.Unlock()
	switch {
	case h == nil || h.hold.Lost():
		p.acquire(ctx, r)
	default:
		switch p.w.draw(30) {
		case 0:
			p.give(ctx, r, h)
		case 1:
			p.raise(ctx, r, h)
		default:
			p.serve(r, h)
		}
	}
}

// acquire takes a register as package ownership does, and now and then loses interest on the way.
func (p *process) acquire(ctx context.Context, r seq.Register) {
	me := p.secret.Session()
	p.mu.Lock()
	delete(p.holds, r)
	p.mu.Unlock()
	look := p.group.Probe(ctx, me, []seq.Register{r})[0]
	if look.State != quorum.Won {
		return
	}
	round := look.Promised.Round + 1
	found := p.group.Prepare(ctx, me, []quorum.PrepareItem{{Register: r, Round: round}})[0]
	if found.State != quorum.Won || p.w.draw(20) == 0 {
		return
	}
	to := found.Max + 50
	if p.group.Step(ctx, me, []quorum.StepItem{{Register: r, Round: round, Max: to}})[0].State != quorum.Won || p.w.draw(20) == 0 {
		return
	}
	h := &held{hold: p.leases.Attach(r, round), next: found.Max + 1, ceiling: to}
	p.mu.Lock()
	p.holds[r] = h
	p.mu.Unlock()
}

func (p *process) raise(ctx context.Context, r seq.Register, h *held) {
	to := h.ceiling + 50
	if p.group.Step(ctx, p.secret.Session(), []quorum.StepItem{{Register: r, Round: h.hold.Round(), Max: to}})[0].State == quorum.Won {
		h.ceiling = to
	}
}

func (p *process) give(ctx context.Context, r seq.Register, h *held) {
	p.mu.Lock()
	delete(p.holds, r)
	p.mu.Unlock()
	h.hold.Drop()
	if p.w.draw(3) == 0 {
		return // the next renewal tells of the drop
	}
	next := p.w.nodes[p.w.draw(len(p.w.nodes))]
	next.mu.Lock()
	to := next.secret.Session()
	next.mu.Unlock()
	_ = p.group.Release(ctx, p.secret.Session(), []quorum.LeaseItem{{Register: r, Round: h.hold.Round()}}, to)
}

// serve hands a number out, and checks that no other process could at this moment.
func (p *process) serve(r seq.Register, h *held) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Now() >= h.hold.Until() || h.next > h.ceiling {
		return
	}
	for _, other := range w.nodes {
		other.mu.Lock()
		theirs := other.holds[r]
		if other != p && theirs != nil && other.Now() < theirs.hold.Until() {
			w.t.Errorf("%s: held by %s in round %d and by %s in round %d at once", r, p.name, h.hold.Round(), other.name, theirs.hold.Round())
		}
		other.mu.Unlock()
	}
	if h.next <= w.last[r] {
		w.t.Errorf("%s: %s hands out %d after %d", r, p.name, h.next, w.last[r])
	}
	w.last[r] = h.next
	h.next++
	w.served++
}
