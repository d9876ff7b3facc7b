package client

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/seq"
)

// watchUpdates is the largest number of updates that one Next returns.
const watchUpdates = 1024

// Update tells of a watched key. Seq of its Mark is the last number in a space without tickets. If Err is set,
// no server watches the key now.
type Update struct {
	Key Key
	Mark
	Ended bool // with Err: the key was removed. Otherwise the watch asks for it again.
}

// Watch tells the newest numbers and marks of its keys, of any spaces. Changes of a key may be merged, and its
// newest numbers are never missed, also over a failover. It is safe for concurrent use. Close it in the end.
type Watch struct{ w *call.Watch }

// Watch watches keys, and waits for nothing. Next tells the present of each key first. ctx bounds nothing but
// the call. seq.ErrBadArgument for a key that cannot be, seq.ErrWatches for more than 1,048,576 keys.
func (c *Client) Watch(ctx context.Context, keys ...Key) (*Watch, error) {
	if err := ctx.Err(); err != nil {
		return nil, call.Told("watch", err)
	}
	w := &Watch{c.calls.Watch()}
	if err := w.Add(keys...); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Add watches more keys. If it fails, it adds none. It fails as Client.Watch does.
func (w *Watch) Add(keys ...Key) error { return w.w.Add(keys...) }

// Remove no longer watches keys. Next tells nothing of them after that.
func (w *Watch) Remove(keys ...Key) { w.w.Remove(keys...) }

// Next waits for news, and returns some of them, each key once. ErrClosed after Close; otherwise the error of
// ctx. A watch that is not read takes no more memory for it.
func (w *Watch) Next(ctx context.Context) ([]Update, error) {
	got, err := w.w.Next(ctx, watchUpdates)
	if err != nil {
		return nil, call.Told("watch", err)
	}
	out := make([]Update, len(got))
	for i, u := range got {
		out[i] = Update{Key: u.Key, Ended: u.Ended,
			Mark: Mark{Seq: seq.Seq(u.Mark), Fence: seq.Seq(u.Fence), Last: seq.Seq(u.Last), KnownIn: u.KnownIn, Err: u.Err}}
	}
	return out, nil
}

// Close ends the watch.
func (w *Watch) Close() { w.w.Close() }
