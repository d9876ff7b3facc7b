package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// cloning is the end of some runs, when all faults are over: the disk of a store is copied, and a
// second process runs on the copy. Some allocators reach the one and some the other.
//
// Until two processes of one store are heard of, each answers the nodes that reach it. That is a limit of
// the guarantees, so here no request about a register reaches either of them meanwhile.
type cloning struct {
	w       *world
	rng     *rand.Rand
	h       *host // the store
	copy    *host // the machine with the copy
	stopped bool  // the disk was copied while no process ran on it, and both begin at once
	lacks   bool  // the store has promised what the copy does not have
}

// clone plays the end of a run, if a store is left that the run can spare.
func (w *world) clone() {
	c := &cloning{w: w, rng: rand.New(rand.NewPCG(w.opts.Seed, 0xc10e))}
	stores := w.hosts.of(storeHost)
	w.mu.Lock()
	h := stores[c.rng.IntN(len(stores))]
	if !h.up || h.forfeit || h.lost || h.disk.distrusted() || h.disk.meta().Distrusted != "" || !w.faults.mayLose(h) {
		w.mu.Unlock()
		return
	}
	h.forfeit = true
	w.stats.Faults["clone"]++
	c.h, c.stopped = h, c.rng.IntN(2) == 0
	c.copy = w.hosts.add(binderHost, h.name+"+", h.index)
	c.copy.disk = newDisk(w, c.copy)
	w.mu.Unlock()
	c.begin()
	w.sleep(3*w.opts.Lease + time.Second)
	c.judge()
	c.end()
}

// begin copies the disk and starts the process on the copy.
func (c *cloning) begin() {
	w := c.w
	if c.stopped {
		c.shut(true)
		w.procs.kill(c.h, 0)
		w.mu.Lock()
		over := c.h.over
		w.mu.Unlock()
		<-over
	}
	c.h.disk.mu.Lock()
	was := c.h.disk.now.clone()
	c.h.disk.mu.Unlock()
	c.copy.disk.mu.Lock()
	c.copy.disk.now = was
	c.copy.disk.mu.Unlock()
	if !c.stopped { // the store goes on for a while
		w.sleep(time.Duration(c.rng.Int64N(int64(4 * w.opts.Lease))))
		c.shut(true)
		w.sleep(time.Second) // what was under way is done
	}
	c.h.disk.mu.Lock()
	for r, st := range c.h.disk.now.registers {
		c.lacks = c.lacks || was.registers[r].Promised.Less(st.Promised) || was.registers[r].Max < st.Max
	}
	c.h.disk.mu.Unlock()
	w.mu.Lock()
	if c.lacks {
		w.stats.Faults["clonelacks"]++
	}
	// The second process of a node has ended for good by now, and would reach neither.
	allocs := slices.DeleteFunc(slices.Clone(w.hosts.of(allocHost)), func(a *host) bool { return a.twinOf != "" })
	c.rng.Shuffle(len(allocs), func(i, j int) { allocs[i], allocs[j] = allocs[j], allocs[i] })
	for _, a := range allocs[:1+c.rng.IntN(len(allocs)-1)] { // the others reach the store
		w.links.copied[a] = map[string]string{c.h.name: c.copy.name}
	}
	w.mu.Unlock()
	w.back.start(c.h)
	w.back.start(c.copy)
}

// shut has requests about registers reach neither process, or the store again.
func (c *cloning) shut(shut bool) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.h.shut, c.copy.shut = shut, shut
}

// judge checks that the two have been heard of: one at least never votes again, and says why, and
// the copy is that one if it lacks what the store has promised.
func (c *cloning) judge() {
	found := 0
	for _, h := range []*host{c.h, c.copy} {
		if h.disk.meta().Distrusted == "" {
			continue
		}
		found++
		from := c.w.hosts.of(callerHost)[0]
		ctx, cancel := context.WithTimeout(c.w.life, 5*time.Second)
		d, err := pb.NewStoreClient(&conn{w: c.w, from: from, life: from.life, to: h.name}).Describe(ctx, &pb.DescribeRequest{})
		cancel()
		if err != nil || d.GetVoting() || !strings.Contains(d.GetState(), "distrusted") {
			c.w.check.broken("clone", "%s has heard of another process of its disk, and says %q: %v", h.name, d.GetState(), err)
		}
	}
	switch {
	case found == 0:
		c.w.check.broken("clone", "%s and a copy of it have both lived for %v, and neither is found out", c.h.name, 3*c.w.opts.Lease)
	case c.lacks && c.copy.disk.meta().Distrusted == "":
		c.w.check.broken("clone", "%s votes and lacks what %s has promised", c.copy.name, c.h.name)
	}
}

// end ends the copy. The store goes on, unless it was the one that was found out.
func (c *cloning) end() {
	w := c.w
	w.procs.kill(c.copy, 0)
	w.mu.Lock()
	c.h.shut = false
	clear(w.links.copied)
	w.mu.Unlock()
}
