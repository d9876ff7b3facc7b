package sim

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

var (
	errIO      = errors.New("simulated disk: input/output error")
	errNoSpace = errors.New("simulated disk: no space left on device")
	errPower   = errors.New("simulated disk: the process has ended")
)

// content is what a disk has after its last fsync. A transaction is on it wholly or not
// at all: that is what bbolt gives, and tests/e2e holds bbolt to it.
type content struct {
	meta      disk.Meta
	registers map[seq.Register]acceptor.State
	copies    map[seq.SectionID]*exact.Copy // of the sections of exact spaces; with files, as they began
	files     *platter                      // of the real journal, in runs that have it
}

func (c content) clone() content {
	if c.meta.Journal != nil {
		journal := *c.meta.Journal
		c.meta.Journal = &journal
	}
	c.registers, c.copies, c.files = maps.Clone(c.registers), c.cloned(), c.files.clone()
	return c
}

func (c content) cloned() map[seq.SectionID]*exact.Copy {
	out := map[seq.SectionID]*exact.Copy{}
	for id, one := range c.copies {
		space, err := c.meta.Mapping.SpaceOf(id)
		if err != nil {
			continue
		}
		out[id] = exact.Restore(one.State(), space.Window.Milliseconds())
	}
	return out
}

// commits returns the commits of the database and of the journal.
func (c content) commits() uint64 {
	if c.meta.Journal == nil {
		return c.meta.Commits
	}
	return c.meta.Commits + c.meta.Journal.Batches
}

// blank makes what a new disk has of the sections of exact spaces.
func (c *content) blank() {
	c.copies = map[seq.SectionID]*exact.Copy{}
	for _, s := range c.meta.Mapping.Spaces {
		for id := s.First; s.Mode == seq.Exact && id < s.First+seq.SectionID(s.Sections); id++ {
			c.copies[id] = exact.Restore(exact.Beginning(c.meta.Floors.Section), s.Window.Milliseconds())
			c.meta.Journal = &disk.Journal{ID: 1, Batches: 1}
		}
	}
}

// simDisk is the disk of one store host. It outlives the processes on it.
type simDisk struct {
	w *world
	h *host

	mu      sync.Mutex // guards all below
	now     content
	old     []content // as it was at some moments, the latest last
	highest map[seq.Register]uint64
	peaks   map[string]map[seq.Register]uint64 // highest, by the uuid that the disk had
	lasts   map[seq.UID]uint64                 // highest number of each UID of the exact space
	gate    uint64                             // above 0 on an old disk: only a session that has seen this many commits may reach it
	told    int                                // the life in which the old disk was found out

	slow     time.Duration // of a commit at most
	full     bool
	failNext error  // of the next commit
	fate     string // of a commit that is cut off: kept or lost; if empty, either

	dark bool       // the power was cut since the process ended
	torn *rand.Rand // what a power cut leaves
}

func newDisk(w *world, h *host) *simDisk {
	return &simDisk{w: w, h: h, highest: map[seq.Register]uint64{}, peaks: map[string]map[seq.Register]uint64{}, lasts: map[seq.UID]uint64{},
		torn: rand.New(rand.NewPCG(w.opts.Seed, 0x70b4+uint64(h.index)))}
}

// peak notes that the disk has a max. Needs d.mu.
func (d *simDisk) peak(r seq.Register, value uint64) {
	of := d.peaks[d.now.meta.UUID]
	if of == nil {
		of = map[seq.Register]uint64{}
		d.peaks[d.now.meta.UUID] = of
	}
	d.highest[r], of[r] = max(d.highest[r], value), max(of[r], value)
}

// format makes the content that storesvr init and the binding leave.
func (d *simDisk) format(uuid string, members *disk.Members) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.w.ident
	names := make([]string, len(id.Members))
	for i, m := range id.Members {
		names[i] = m.Name
	}
	era := max(id.Ref.Era, d.now.meta.Era)
	d.now = content{
		meta: disk.Meta{Identity: disk.Identity{Format: disk.Format, Cluster: id.Ref.Cluster, UUID: uuid, Name: d.h.name, Era: era,
			N: id.N, R: id.R, W: id.W, Names: names, Mapping: id.Mapping}},
		registers: map[seq.Register]acceptor.State{},
	}
	d.now.meta.Key = keyOf(uuid)
	d.now.blank()
	d.w.check.eras.home(uuid, d.h)
	if members != nil {
		d.now.meta.Members = *members
		d.w.check.eras.listed(d.h, d.now.meta.Identity, *members)
	}
	for s := range seq.SectionID(id.Mapping.Sections()) {
		d.now.registers[seq.SectionRegister(s)] = acceptor.State{}
	}
	for _, r := range seq.FixedRegisters() {
		d.now.registers[r] = acceptor.State{}
	}
	d.lay()
	d.old = nil
}

// install makes the content that a store has which is no founder: a learner, or one that
// was restored.
func (d *simDisk) install(c content) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.w.check.eras.home(c.meta.UUID, d.h)
	c.meta.Format, c.meta.Key = disk.Format, keyOf(c.meta.UUID)
	d.now, d.old, d.gate, d.told = c, nil, 0, 0
	d.lay()
	for r, st := range c.registers {
		d.peak(r, st.Max)
	}
}

// keyOf is the key of the seals of a store.
func keyOf(uuid string) []byte { return []byte("key of " + uuid) }

// open counts the boot, as disk.Open does, for a process that lives until dead is closed.
func (d *simDisk) open(dead chan struct{}) (*database, disk.Meta, map[seq.Register]acceptor.State, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	db := &database{d: d, dead: dead, copies: d.now.cloned()}
	var err error
	if db.journal, err = d.read(); err != nil {
		return nil, disk.Meta{}, nil, fmt.Errorf("journal of %s: %w", d.h.name, err)
	}
	d.now.meta.BootCount++
	d.now.meta.Commits++
	meta := d.now.meta
	if meta.Journal != nil {
		journal := *meta.Journal
		meta.Journal = &journal
	}
	return db, meta, maps.Clone(d.now.registers), nil
}

// remember keeps the content as something that may be put back later.
func (d *simDisk) remember() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.old = append(d.old, d.now.clone()); len(d.old) > 8 {
		d.old = d.old[1:]
	}
}

// forget drops what could be put back.
func (d *simDisk) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.old = nil
}

// putBack restores an earlier content; false if there is none that can be found out: by what
// so many fellow stores have on their disks that one of them is asked before the copy votes.
// Decision 008 promises that, and nothing of what the store did unheard.
func (d *simDisk) putBack(which int) bool {
	heard := d.remembered()
	d.mu.Lock()
	defer d.mu.Unlock()
	var aged []content
	for _, c := range d.old {
		if d.foundOut(c, heard) {
			aged = append(aged, c)
		}
	}
	if len(aged) == 0 {
		return false
	}
	old := aged[which%len(aged)]
	if old.commits()+2 >= d.now.commits() { // the boot counts one
		return false
	}
	d.gate = d.now.commits()
	d.now = old.clone()
	return true
}

// foundOut says whether N-W+1 fellows remember more of the disk than the copy has. Needs d.mu.
func (d *simDisk) foundOut(c content, heard map[string]quorum.Claim) bool {
	voters := quorum.MemberList{Members: d.now.meta.Members.List}.Voters()
	know := 0
	for _, m := range voters {
		of, ok := heard[m.UUID]
		if ok && (of.Commits > c.commits() || of.Boot > c.meta.BootCount+1) { // its next start is one more
			know++
		}
	}
	return know > len(voters)-(len(voters)/2+1)
}

// remembered is what the other stores have on disk of this one, by their uuid.
func (d *simDisk) remembered() map[string]quorum.Claim {
	d.mu.Lock()
	uuid := d.now.meta.UUID
	d.mu.Unlock()
	out := map[string]quorum.Claim{}
	for _, h := range d.w.hosts.of(storeHost) {
		if h.disk == d {
			continue
		}
		h.disk.mu.Lock()
		for _, c := range h.disk.now.meta.Remembered {
			if c.Store == uuid {
				out[h.disk.now.meta.UUID] = c
			}
		}
		h.disk.mu.Unlock()
	}
	return out
}

// letsIn says whether a message may reach the store. An old disk is found out by the
// first session that has seen it newer (docs/decisions.md, 008 says what that leaves open),
// so here that session is the first that gets through, in every life until the store has
// written down what it was told.
func (d *simDisk) letsIn(k *call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gate == 0 || d.now.meta.Distrusted != "" || d.told == d.h.life {
		return true
	}
	// By its own clock, as the store counts, and not so close to the end that a request could wait for
	// the disk until then.
	late := 2 * (d.w.opts.Disk + d.slow)
	if d.h.clock.Now()-d.h.born+late < acceptor.GraceOf(d.w.opts.Lease) {
		return true
	}
	return d.shows(k)
}

// shows reports whether a message is a renewal that tells the store of more commits than its disk has.
// Needs d.mu.
func (d *simDisk) shows(k *call) bool {
	var req pb.RenewRequest
	if pointName(k.method) != "renew" || proto.Unmarshal(k.body, &req) != nil {
		return false
	}
	return slices.ContainsFunc(req.GetSeen(), func(c *pb.StoreClaim) bool {
		return c.GetStoreUuid() == d.now.meta.UUID && (c.GetCommits() >= d.gate || c.GetCommits() > d.now.commits())
	})
}

// heard takes in that the store has answered a renewal that showed it: it has to know by now that its
// disk is old, whatever it said. A renewal in its grace may have shown nothing. Needs world.mu.
func (d *simDisk) heard(k *call, err error) {
	if err != nil && !errors.Is(rpc.FromStatus(err), seq.ErrNotVoting) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gate > 0 && d.shows(k) {
		d.told = d.h.life
	}
}

// distrusted says whether the store must not vote any more.
func (d *simDisk) distrusted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gate > 0
}

// hadLast says whether the disk ever had a number of a UID of the exact space.
func (d *simDisk) hadLast(uid seq.UID, number uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lasts[uid] >= number
}

// had is the highest max that was ever on this disk, put back or not.
func (d *simDisk) had(r seq.Register) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.highest[r]
}

// peaked is the highest max of every register that was ever on this disk.
func (d *simDisk) peaked() map[seq.Register]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.highest)
}

// hadAs is had for the store with that uuid.
func (d *simDisk) hadAs(uuid string, r seq.Register) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peaks[uuid][r]
}

// state is the register as it is on the disk.
func (d *simDisk) state(r seq.Register) acceptor.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.registers[r]
}

func memberList(n int, tag string) []quorum.Member {
	out := make([]quorum.Member, n)
	for i := range out {
		out[i] = quorum.Member{Name: storeName(i) + tag, UUID: fmt.Sprintf("uuid-%d%s", i+1, tag)}
	}
	return out
}

// knows says whether the register is on the disk.
func (d *simDisk) knows(r seq.Register) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, there := d.now.registers[r]
	return there
}

// meta is what the disk has beside registers.
func (d *simDisk) meta() disk.Meta {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.meta
}
