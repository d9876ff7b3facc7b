package namespaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// AllotmentRequest is a Set's request to the root.
type AllotmentRequest struct {
	Namespace  string     // if empty, the Set asks only for the namespaces and its allotments
	Datacenter Datacenter // of the node that asks
	// Have is the number of worker ids that the Set has, which is not enough.
	Have uint64
	// Worker is the only acceptable worker id. If nil, every worker id is acceptable.
	Worker *snowflake.Worker
}

// errAsk means that this Set's document lacks something, and that the root must be asked. It does not leave
// this package.
var errAsk = errors.New("ask the root Set")

// ask asks the root, and takes down what it says.
func (c *Catalog) ask(ctx context.Context, w AllotmentRequest) error {
	body, err := c.cfg.Root.Ask(ctx, w)
	if err != nil {
		return fmt.Errorf("ask the root Set: %w", err)
	}
	told, err := parseDirectory(body)
	if err != nil {
		return err
	}
	return c.change(ctx, func(v *View) (directory, bool, error) {
		d, err := v.join()
		if err != nil {
			return d, false, err
		}
		d, changed, err := d.merge(told)
		return d, changed || !v.Member, err
	})
}

// hearPause is the pause before the root is asked again about a namespace, or about all namespaces, after
// it was asked in vain. So a flood of calls does not become a flood at the root.
const hearPause = time.Second

// heard is the result of asking the root about one namespace.
type heard struct {
	asking chan struct{} // cap 1: held by the call that asks, and guards the two below
	vain   time.Time     // when the root was last asked in vain; zero if it never was, or has helped since
	err    error         // of that time
}

// hear asks the root, unless another call has got what is wanted meanwhile, or has asked in vain a
// moment ago.
func (c *Catalog) hear(ctx context.Context, w AllotmentRequest, got func() bool) error {
	known, _ := c.heard.LoadOrStore(w.Namespace, &heard{asking: make(chan struct{}, 1)})
	h := known.(*heard)
	select {
	case h.asking <- struct{}{}:
		defer func() { <-h.asking }()
	case <-ctx.Done():
		return fmt.Errorf("ask the root Set: %w", context.Cause(ctx))
	}
	if got() {
		return nil
	}
	if time.Since(h.vain) < hearPause {
		return h.err
	}
	h.err, h.vain = c.ask(ctx, w), time.Time{}
	if !got() && ctx.Err() == nil { // else another caller may have the time
		h.vain = time.Now()
	}
	return h.err
}

// newestPatience bounds how long Newest waits for the root, if its caller has a deadline.
const newestPatience = time.Second

// Newest returns the present document. In a Set other than the root it first adds the root's newer
// contents, if the root answers within half of the caller's time, at most a second.
func (c *Catalog) Newest(ctx context.Context) (*View, error) {
	if c.cfg.Root.Elsewhere() != nil {
		asking, cancel := context.WithCancel(ctx)
		if end, ok := ctx.Deadline(); ok {
			asking, cancel = context.WithTimeout(ctx, min(time.Until(end)/2, newestPatience))
		}
		defer cancel()
		if err := c.ask(asking, AllotmentRequest{}); err != nil {
			c.cfg.Logger.Debug("namespaces of the root Set not heard of", "error", err)
		}
	}
	return c.Load(ctx)
}

// More asks the root for more worker ids than the Set has in a namespace, and gives what it has then.
// seq.ErrWorkersExhausted, or why the root does not answer.
func (c *Catalog) More(ctx context.Context, name string, have Own) (own Own, err error) {
	w := AllotmentRequest{Namespace: name, Datacenter: c.cfg.Node.Datacenter, Have: have.Size(), Worker: c.cfg.Node.Worker}
	err = c.hear(ctx, w, func() bool {
		ns, err := c.Known().Named(name)
		if err == nil {
			own = c.Own(ns, c.cfg.Node.DatacenterIn(ns.Layout))
		}
		return own.Size() > have.Size()
	})
	return own, err
}

// maxAskedAhead bounds the namespaces that a Set asks for ahead of need. Each allotment costs the root
// registers.
const maxAskedAhead = 128

// askAhead asks the root, from another Set, for worker ids of each recorded namespace of which the Set has
// none. So the Set can make IDs even if the root is dead when a caller comes. askAhead returns true if it
// need not ask again soon, because the root answered or this is the root.
func (c *Catalog) askAhead(ctx context.Context, v *View) (done bool) {
	if c.cfg.Root.Elsewhere() == nil {
		return true
	}
	for _, ns := range v.Namespaces[:min(len(v.Namespaces), maxAskedAhead)] {
		if ns.Retired != 0 || c.cfg.Node.Fits(ns.Layout) != nil || !c.Known().lacks(ns.Name, c.cfg.Node) {
			continue
		}
		if _, _, err := c.Record(ctx, ns.Name); err != nil {
			c.cfg.Logger.Debug("no worker ids ahead of need", "namespace", ns.Name, "error", err)
			if errors.Is(err, seq.ErrNoRoute) {
				return false // the others would get the same answer
			}
		}
	}
	return true
}
