package namespaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/snowflake"
)

// Wish is what a Set asks the root for.
type Wish struct {
	Namespace  string     // empty: to hear of the namespaces, and of what it has
	Datacenter Datacenter // of the node that asks
	// Have is how many worker ids the Set has, which are not enough.
	Have uint64
	// Worker is the only one that will do; nil: any will.
	Worker *snowflake.Worker
}

// errAsk: what is needed is not in the document of this Set, and the root is to be asked. It does
// not leave this package.
var errAsk = errors.New("ask the root Set")

// ask asks the root, and takes down what it says.
func (c *Catalog) ask(ctx context.Context, w Wish) error {
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

// hearPause is how long an answer of the root, or none, is good for calls that name a namespace which
// this Set does not know: a flood of them is not one for the root.
const hearPause = time.Second

// hear asks the root for its namespaces, unless another call did so a moment ago.
func (c *Catalog) hear(ctx context.Context) error {
	select {
	case c.hearing <- struct{}{}:
		defer func() { <-c.hearing }()
	case <-ctx.Done():
		return fmt.Errorf("ask the root Set: %w", context.Cause(ctx))
	}
	if c.heard.IsZero() || time.Since(c.heard) >= hearPause {
		c.told = c.ask(ctx, Wish{})
		c.heard = time.Now()
	}
	return c.told
}

// Newest is the document as it is now; of a Set other than the root with what is newer there, if
// that answers.
func (c *Catalog) Newest(ctx context.Context) (*View, error) {
	if c.cfg.Root.Elsewhere() != nil {
		if err := c.ask(ctx, Wish{}); err != nil {
			c.cfg.Logger.Debug("namespaces of the root Set not heard of", "error", err)
		}
	}
	return c.Load(ctx)
}

// More asks the root for more worker ids than the Set has in a namespace. seq.ErrWorkersExhausted, or
// why it does not answer.
func (c *Catalog) More(ctx context.Context, name string, have Own) (Own, error) {
	if err := c.ask(ctx, Wish{Namespace: name, Datacenter: c.cfg.Node.Datacenter, Have: have.Size(), Worker: c.cfg.Node.Worker}); err != nil {
		return nil, err
	}
	v := c.Known()
	ns, err := v.Named(name)
	if err != nil {
		return nil, err
	}
	return c.Own(ns, c.cfg.Node.DatacenterIn(ns.Layout)), nil
}
