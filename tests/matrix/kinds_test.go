package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// got is one answer: a number, and the text of a business number.
type got struct {
	number uint64
	text   string
	// unordered reports that a unique-only space answered without a lease.
	unordered bool
}

// kind is one kind of number as a caller takes it.
type kind struct {
	name    string
	take    func(ctx context.Context, c *client.Client, request string) (got, error)
	rises   bool // each answer is above the one before
	gapless bool // and the next number, unless a restore lifted it

	last   uint64
	seen   map[string]bool
	lifted bool // the next answer may skip numbers
}

// of takes numbers of a key. In a space of mode=exact each attempt has the same request id.
func of(name string, key client.Key, exact bool) *kind {
	return &kind{name: name, rises: true, gapless: exact, take: func(ctx context.Context, c *client.Client, request string) (got, error) {
		if !exact {
			r, err := c.Take(ctx, key, 1)
			return got{number: uint64(r.First), unordered: r.Unordered}, err
		}
		r, err := c.TakeIdempotent(ctx, key, 1, client.Request{ID: request})
		return got{number: uint64(r.First)}, err
	}}
}

// tag takes numbers of a tag.
func tag(name string) *kind {
	return &kind{name: "tag", rises: true, take: func(ctx context.Context, c *client.Client, _ string) (got, error) {
		first, _, err := c.TakeSegment(ctx, name, 1)
		return got{number: uint64(first)}, err
	}}
}

// The spaces of the run, beside the default one.
const (
	strictSpace = "strict"
	looseSpace  = "loose"
	exactSpace  = "exact"
	inboxSpace  = "inbox" // with tickets
	namespace   = "matrix"
)

// ticketLife is the life of tickets.
const ticketLife = time.Second

// ticket takes numbers with a ticket, and reads by marks. A mark stays below an open number (R1), never falls (R2),
// and reaches the number after Done (R3).
func ticket(name string, key client.Key, exact bool) *kind {
	told, attempts := seq.Seq(0), 0
	read := func(ctx context.Context, c *client.Client) (client.Mark, error) {
		m, err := c.Marks(ctx, key)
		if err == nil {
			err = m[0].Err
		}
		if err != nil || m[0].KnownIn > 0 {
			return client.Mark{}, err
		}
		if m[0].Seq < told {
			return m[0], fmt.Errorf("%w: %d after %d", errMark, m[0].Seq, told)
		}
		told = m[0].Seq
		return m[0], nil
	}
	return &kind{name: name, rises: true, take: func(ctx context.Context, c *client.Client, request string) (got, error) {
		var once []client.OpenOption
		if attempts++; exact {
			once = append(once, client.OpenedOnce(client.Request{ID: fmt.Sprint(request, "-", attempts)}))
		}
		t, err := c.Open(ctx, key, 1, once...)
		if err == nil && exact {
			first := t.First
			if t, err = c.Open(ctx, key, 1, once...); err == nil && (t.First != first || !t.Replayed) {
				err = fmt.Errorf("%w: the request has %d first, and then %d", errMark, first, t.First)
			}
		}
		if err != nil {
			return got{}, err
		}
		m, err := read(ctx, c)
		if err == nil && m.Seq >= t.First && time.Until(t.Deadline) > 0 {
			err = fmt.Errorf("%w: %d, and %d is open", errMark, m.Seq, t.First)
		}
		if err == nil {
			err = t.Done(ctx)
		}
		for err == nil && m.Seq < t.Last {
			if m, err = read(ctx, c); err == nil && m.Seq < t.Last {
				select {
				case <-ctx.Done():
					err = ctx.Err()
				case <-time.After(ticketLife / 20):
				}
			}
		}
		return got{number: uint64(t.First)}, err
	}}
}

// watch takes numbers, and waits until a watch that is never begun again has told of them.
func watch(name string, key client.Key) *kind {
	var w *client.Watch
	told := seq.Seq(0)
	return &kind{name: name, rises: true, take: func(ctx context.Context, c *client.Client, _ string) (got, error) {
		if w == nil {
			var err error
			if w, err = c.Watch(ctx, key); err != nil {
				return got{}, err
			}
		}
		r, err := c.Take(ctx, key, 1)
		for err == nil && told < r.First {
			var news []client.Update
			news, err = w.Next(ctx)
			for _, u := range news {
				switch {
				case u.Ended:
					err = fmt.Errorf("%w: the watch of %v ended: %w", errMark, key, u.Err)
				case u.Err == nil && u.KnownIn == 0 && u.Seq < told:
					err = fmt.Errorf("%w: %d after %d", errMark, u.Seq, told)
				case u.Err == nil && u.KnownIn == 0:
					told = u.Seq
				}
			}
		}
		return got{number: uint64(r.First)}, err
	}}
}

// errMark is a broken promise to readers.
var errMark = errors.New("wrong mark")

// kindsOf returns all kinds that an engine has. If reads is not set, no space has tickets.
func kindsOf(exact, reads bool) []*kind {
	uid, name := seq.UID(4711), "room:7"
	kinds := []*kind{
		of("ordinary", client.Key{UID: uid}, false),
		of("strict", client.Key{Space: strictSpace, UID: uid}, false),
		of("unique-only", client.Key{Space: looseSpace, UID: uid}, false),
		of("key", client.StringKey("", name), false),
		tag("plain"),
		{name: "number", rises: true, take: func(ctx context.Context, c *client.Client, _ string) (got, error) {
			n, err := c.NextNumbers(ctx, "bill", 1)
			if err != nil {
				return got{}, err
			}
			return got{number: uint64(n.First), text: n.Texts[0]}, nil
		}},
		{name: "worker", take: func(ctx context.Context, c *client.Client, _ string) (got, error) {
			id, err := c.NextID(ctx, namespace)
			return got{number: uint64(id)}, err
		}},
	}
	if exact {
		kinds = append(kinds,
			of("exact", client.Key{Space: exactSpace, UID: uid}, true),
			of("exact-key", client.StringKey(exactSpace, name), true))
	}
	if reads {
		kinds = append(kinds, ticket("ticket", client.Key{Space: inboxSpace, UID: uid}, false),
			ticket("ticket of a string key", client.StringKey(inboxSpace, name), false),
			watch("watch", client.Key{Space: inboxSpace, UID: uid + 1}), watch("watch of a string key", client.StringKey("", "room:8")))
		if exact {
			kinds = append(kinds, ticket("exact-ticket", client.Key{Space: exactSpace, UID: uid + 1}, true))
		}
	}
	return kinds
}

// check takes in an answer, and returns what promise it breaks.
func (k *kind) check(g got) error {
	text := g.text
	if text == "" {
		text = fmt.Sprint(g.number)
	}
	if k.seen == nil {
		k.seen = map[string]bool{}
	}
	last, lifted := k.last, k.lifted
	k.last, k.lifted = max(k.last, g.number), false
	switch {
	case k.seen[text]:
		return fmt.Errorf("%s came twice", text)
	case k.rises && !g.unordered && g.number <= last:
		return fmt.Errorf("%d came after %d", g.number, last)
	case k.gapless && !lifted && g.number != last+1:
		return fmt.Errorf("%d came after %d: a hole", g.number, last)
	}
	k.seen[text] = true
	return nil
}
