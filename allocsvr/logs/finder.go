package logs

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// Finder finds the log of a section that this node owns, waiting for the section as long as
// ctx lasts. An error: this node has no such log; the call ends with it.
type Finder func(ctx context.Context, id seq.SectionID) (*Log, error)

// Ask asks the log of a section, and waits for the answer to hold: again if the log was
// closed before.
func (find Finder) Ask(ctx context.Context, id seq.SectionID, ask func(*Log) (Ticket, error)) (exact.Answer, error) {
	for {
		ticket, err := find.begin(ctx, id, ask)
		if err == nil {
			err = ticket.Wait(ctx)
		}
		if err = conflicting(ctx, ticket, err); !errors.Is(err, ErrClosed) {
			return ticket.Answer, err
		}
	}
}

// AskAll asks about many keys, ids[k] being the section of key k: first all logs are asked, so
// that the keys share commits, and then each answer is waited for. done is called once a key, in
// order. Within a section they are asked in order, too: once it is refused to a key, later ones get
// the same error, and a log that follows the first one is asked only when the first one's answers
// are there.
func (find Finder) AskAll(ctx context.Context, ids []seq.SectionID, ask func(k int, g *Log) (Ticket, error), done func(k int, a exact.Answer, err error)) {
	tickets, errs := make([]Ticket, len(ids)), make([]error, len(ids))
	first := map[seq.SectionID]*Log{}
	find = find.once()
	for k, id := range ids {
		tickets[k], errs[k] = find.begin(ctx, id, func(g *Log) (Ticket, error) {
			if of := first[id]; of != nil && of != g {
				return Ticket{}, errLater
			}
			first[id] = g
			return ask(k, g)
		})
	}
	for k, id := range ids {
		answer, err := tickets[k].Answer, errs[k]
		if err == nil {
			err = tickets[k].Wait(ctx)
		}
		if err = conflicting(ctx, tickets[k], err); errors.Is(err, ErrClosed) || err == errLater {
			answer, err = find.Ask(ctx, id, func(g *Log) (Ticket, error) { return ask(k, g) })
		}
		done(k, answer, err)
	}
}

// errLater: the section has another log than for the keys before, whose answers come first.
var errLater = errors.New("asked after the log before")

// once finds logs until there is none of a section: then that is the answer for the section.
func (find Finder) once() Finder {
	refused := map[seq.SectionID]error{}
	return func(ctx context.Context, id seq.SectionID) (g *Log, err error) {
		if err = refused[id]; err == nil {
			g, err = find(ctx, id)
			refused[id] = err
		}
		return g, err
	}
}

// begin asks the log of a section: again if that was closed meanwhile.
func (find Finder) begin(ctx context.Context, id seq.SectionID, ask func(*Log) (Ticket, error)) (Ticket, error) {
	for {
		g, err := find(ctx, id)
		if err != nil {
			return Ticket{}, err
		}
		ticket, err := ask(g)
		switch {
		case !errors.Is(err, ErrClosed):
			return ticket, err
		case ctx.Err() != nil:
			return Ticket{}, fmt.Errorf("section %d: %w", id, context.Cause(ctx))
		}
		runtime.Gosched() // the section is about to be given up
	}
}

// conflicting has a conflict wait, too, until what it tells is at W stores.
func conflicting(ctx context.Context, ticket Ticket, err error) error {
	if errors.Is(err, exact.ErrConflict) {
		if late := ticket.Wait(ctx); late != nil {
			return late
		}
	}
	return err
}
