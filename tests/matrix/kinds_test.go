package matrix

import (
	"context"
	"fmt"

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
	namespace   = "matrix"
)

// kindsOf returns all kinds that an engine has.
func kindsOf(exact bool) []*kind {
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
