package console

import (
	"context"
	"sync"
	"time"
)

const (
	// pace is the time between the starts of two snapshots.
	pace = time.Second
	// linger is the time that the collector goes on after the last page left. It is longer than the pause
	// of a browser that polls, and than a change of pages.
	linger = 4 * time.Second
	// patience bounds one snapshot, and asking its questions to the AllocSvr, of which one that hangs leaves time to
	// ask the routers. A status of a cluster without a quorum takes 2 s, and pages call data stale at 3.
	patience = 2700 * time.Millisecond
	asking   = 2300 * time.Millisecond
)

// collector makes snapshots while a page watches, one at a time, for all pages.
//
//	no page has watched for linger => no goroutine, no connection, no question to any node
type collector struct {
	gather  func(ctx context.Context, want topicSet, last *snapshot) *snapshot
	release func()          // lets go of what gather holds
	life    context.Context // ends it for good
	end     context.CancelFunc

	mu      sync.Mutex    // guards all below
	now     *snapshot     // nil before the first
	news    chan struct{} // closed when now changes
	number  uint64
	running bool
	watched [topics]int       // by how many right now
	until   [topics]time.Time // collected on until then
	hurry   chan struct{}     // has something when a topic is wanted that was not
	runs    sync.WaitGroup
}

func newCollector(gather func(context.Context, topicSet, *snapshot) *snapshot, release func()) *collector {
	c := &collector{gather: gather, release: release, news: make(chan struct{}), hurry: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// next waits for a snapshot later than number `after` that has all of want, and keeps the
// collector running meanwhile. After 0, one that is there will do. The context's
// error, of ctx or of a collector that was closed.
func (c *collector) next(ctx context.Context, want topicSet, after uint64) (*snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.life.Err(); err != nil {
		return nil, err
	}
	c.watch(want, 1)
	defer c.watch(want, -1)
	if !c.running {
		c.running, c.now = true, nil
		c.runs.Go(c.run)
	}
	asked := false
	for c.now == nil || c.now.number <= after || !c.now.has(want) {
		if c.now != nil && !c.now.has(want) && !asked {
			asked = true
			select {
			case c.hurry <- struct{}{}:
			default:
			}
		}
		news := c.news
		c.mu.Unlock()
		var err error
		select {
		case <-news:
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.life.Done():
			err = c.life.Err()
		}
		c.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return c.now, nil
}

// watch counts the pages; c.mu is held.
func (c *collector) watch(want topicSet, by int) {
	for t, wanted := range want {
		if wanted {
			c.watched[t] += by
			c.until[t] = time.Now().Add(linger)
		}
	}
}

// wanted is what is to be collected; without the status: nothing. c.mu is held.
func (c *collector) wanted(now time.Time) (want topicSet) {
	for t := range want {
		want[t] = c.watched[t] > 0 || now.Before(c.until[t])
	}
	return want
}

// run collects until no page has watched for a while.
func (c *collector) run() {
	defer c.release()
	var last *snapshot
	for {
		begun := time.Now()
		c.mu.Lock()
		want := c.wanted(begun)
		if !want[status] || c.life.Err() != nil {
			c.running, c.now = false, nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		bound, end := context.WithTimeout(c.life, patience)
		s := c.gather(bound, want, last)
		end()
		last = s
		c.mu.Lock()
		c.number++
		s.number, c.now = c.number, s
		close(c.news)
		c.news = make(chan struct{})
		c.mu.Unlock()
		select {
		case <-time.After(pace - time.Since(begun)):
		case <-c.hurry:
		case <-c.life.Done():
		}
	}
}

// close ends it for good.
func (c *collector) close() {
	c.end()
	c.mu.Lock() // a call that was about to start it has, or will not
	c.mu.Unlock()
	c.runs.Wait()
}
