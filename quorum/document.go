package quorum

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Document is a compare-and-swap document. Version counts its changes; 0, with no
// body, is a document that was never written.
//
// In its register the payload is the version, 8 bytes big-endian, and then the
// body; the register's max is set to the version as well. Each version has at most
// one body: a process that changes the document has first read the version before it, from
// W stores that promised to take nothing older.
type Document struct {
	Version uint64
	Body    []byte // do not modify
}

func (d Document) payload() []byte {
	b := make([]byte, 8, 8+len(d.Body))
	binary.BigEndian.PutUint64(b, d.Version)
	return append(b, d.Body...)
}

func parseDocument(payload []byte) (Document, error) {
	if len(payload) == 0 {
		return Document{}, nil
	}
	if len(payload) < 8 {
		return Document{}, fmt.Errorf("%w: %d bytes, expected at least 8", ErrBadDocument, len(payload))
	}
	return Document{Version: binary.BigEndian.Uint64(payload), Body: payload[8:]}, nil
}

const (
	// settleTime bounds the wait of a read for the stores beyond R when the first R do not agree. They
	// often disagree just after a change. To repair that at once would cost two commits and delay the
	// writer.
	settleTime = 25 * time.Millisecond
	// quietRounds bounds the rounds in a row that fail without a quorum before an operation gives up.
	// Rounds that lose to other writers do not count.
	quietRounds = 3
	minBackoff  = 2 * time.Millisecond
	maxBackoff  = 500 * time.Millisecond
)

// LoadDocument reads the current document. It is linearizable with every change. If W stores do not yet
// have the newest value, it writes that value to them first. The caller may retry after seq.ErrNoQuorum and
// after ctx's error.
func (g *Group) LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (Document, error) {
	o := &docOp{g: g, session: session, register: reg}
	doc, err := o.loop(ctx, o.load)
	if err != nil {
		return Document{}, fmt.Errorf("load %s: %w", reg, err)
	}
	return doc, nil
}

// SwapDocument replaces the body of version old by body and returns the document of version old+1. If the
// version is another one, it returns seq.ErrConflict and the current document. After ErrUnknownOutcome, the
// change may have been made, or be made later: load the document, and look. Any other error means that
// nothing was changed, and the caller may retry if the cause allows it.
func (g *Group) SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (Document, error) {
	o := &docOp{g: g, session: session, register: reg, want: Document{Version: old + 1, Body: bytes.Clone(body)}}
	doc, err := o.loop(ctx, o.swap)
	if err == nil || errors.Is(err, seq.ErrConflict) || errors.Is(err, ErrUnknownOutcome) {
		// decided
	} else if len(o.mine) > 0 {
		err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if err != nil {
		return doc, fmt.Errorf("swap %s from version %d: %w", reg, old, err)
	}
	return doc, nil
}

// RepairDocument writes the last accepted document again, under an epoch of its own, to W of the current
// stores. A write that fewer stores accepted under an older member list is either found by that or
// superseded. It returns the errors of LoadDocument.
func (g *Group) RepairDocument(ctx context.Context, session seq.Session, reg seq.Register) error {
	o := &docOp{g: g, session: session, register: reg}
	_, err := o.loop(ctx, func(ctx context.Context) (Document, error) {
		if _, err := o.read(ctx); err != nil {
			return Document{}, err
		}
		found, epoch, err := o.prepare(ctx)
		if err != nil {
			return Document{}, err
		}
		return o.carryOn(ctx, found, epoch)
	})
	if err != nil {
		return fmt.Errorf("repair %s: %w", reg, err)
	}
	return nil
}

// docOp is one Load or Swap, over as many rounds as it takes.
type docOp struct {
	g        *Group
	session  seq.Session
	register seq.Register
	want     Document // of a swap

	// mine are the epochs under which want was sent, never empty again once a
	// step may have reached a store. The same want under several epochs is still
	// one change: each later epoch saw at W promises that no earlier one was chosen,
	// or carries it on.
	mine     []seq.Epoch
	promised seq.Epoch // highest seen
}

// errAgain ends a round that lost to another writer, or whose outcome is not known.
var errAgain = errors.New("again")

// loop repeats try until it comes to an end, ctx ends, or quietRounds fail.
func (o *docOp) loop(ctx context.Context, try func(context.Context) (Document, error)) (Document, error) {
	quiet := 0
	var p patience
	for attempt := 0; ; attempt++ {
		before := o.g.now.Load()
		if err := ctx.Err(); err != nil {
			return Document{}, err
		}
		doc, err := try(ctx)
		switch {
		case errors.Is(err, seq.ErrStaleEra) && o.g.refreshed(ctx, before, &p):
			// the stores have a newer member list, and by now it is known
		case errors.Is(err, seq.ErrNoQuorum):
			if quiet++; quiet >= quietRounds {
				return doc, err
			}
		case errors.Is(err, errAgain):
			quiet = 0
		default:
			return doc, err
		}
		ceiling := min(maxBackoff, minBackoff<<min(attempt, 16))
		select {
		case <-time.After(1 + rand.N(ceiling)):
		case <-ctx.Done():
			return Document{}, fmt.Errorf("%w, last: %w", ctx.Err(), err)
		}
	}
}

func (o *docOp) load(ctx context.Context) (Document, error) {
	v, err := o.read(ctx)
	if err != nil {
		return Document{}, err
	}
	if v.confirmed {
		return parseDocument(v.payload)
	}
	found, epoch, err := o.prepare(ctx)
	if err != nil {
		return Document{}, err
	}
	return o.carryOn(ctx, found, epoch)
}

func (o *docOp) swap(ctx context.Context) (Document, error) {
	v, err := o.read(ctx)
	if err != nil {
		return Document{}, err
	}
	if v.confirmed {
		doc, err := parseDocument(v.payload)
		if err != nil {
			return Document{}, err
		}
		if doc.Version+1 != o.want.Version {
			return o.conclude(doc, v.accepted)
		}
	}
	found, epoch, err := o.prepare(ctx)
	if err != nil {
		return Document{}, err
	}
	doc, err := parseDocument(found.Payload)
	if err != nil {
		return Document{}, err
	}
	if doc.Version+1 == o.want.Version {
		return o.step(ctx, epoch, o.want, true)
	}
	// It is another process's, or an earlier try of this swap. It could still vanish, so
	// it is confirmed before anything is said about it.
	mine := slices.Contains(o.mine, found.Accepted)
	doc, err = o.carryOn(ctx, found, epoch)
	if err != nil || mine {
		return doc, err
	}
	return o.conclude(doc, found.Accepted)
}

// conclude says what a confirmed document means for the swap if its version is not the one
// to be replaced.
func (o *docOp) conclude(doc Document, accepted seq.Epoch) (Document, error) {
	switch {
	case slices.Contains(o.mine, accepted):
		return doc, nil
	case len(o.mine) == 0, doc.Version < o.want.Version,
		doc.Version == o.want.Version && !bytes.Equal(doc.Body, o.want.Body):
		// The last: a version has one body, and it is not this one.
		return doc, fmt.Errorf("%w: version is %d", seq.ErrConflict, doc.Version)
	}
	// It is this swap, finished by another process under its own epoch and perhaps followed
	// by others, or another swap: the versions between are gone, so nothing tells which.
	return doc, fmt.Errorf("%w: version is %d", ErrUnknownOutcome, doc.Version)
}

// carryOn steps what a prepare found under the new epoch.
func (o *docOp) carryOn(ctx context.Context, found Outcome, epoch seq.Epoch) (Document, error) {
	doc, err := parseDocument(found.Payload)
	if err != nil || found.Accepted.IsZero() { // never written: nothing to carry
		return doc, err
	}
	return o.step(ctx, epoch, doc, slices.Contains(o.mine, found.Accepted))
}

// docView is what a read round saw.
type docView struct {
	accepted  seq.Epoch
	payload   []byte
	confirmed bool // W stores have accepted, and none that answered has a newer one
}

// read asks the stores without writing. seq.ErrNoQuorum if fewer than R know the
// register, seq.ErrUnknownRegister if so many lack it that R cannot.
func (o *docOp) read(ctx context.Context) (docView, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now := o.g.now.Load()
	cfg := now.cfg
	var v docView
	var causes []error
	known, alike, missing := 0, 0, 0
	req := ReadRequest{Ref: cfg.Ref, Session: o.session, Registers: []seq.Register{o.register}}
	o.g.round(ctx, now, 1, false, func(ctx context.Context, s Store) (string, []Result, error) {
		reply, err := s.Read(ctx, req)
		return reply.UUID, reply.Results, err
	}, func(a answer) bool {
		switch {
		case a.err != nil:
			causes = append(causes, a.err)
			return false
		case a.results[0].Verdict == VerdictUnknown:
			missing++
			return false
		case a.results[0].Verdict == VerdictNone:
			causes = append(causes, fmt.Errorf("store %s: %w: no verdict", now.stores[a.store].Name, ErrBadReply))
			return false
		}
		r := &a.results[0]
		known++
		o.saw(r.Promised)
		switch c := r.Accepted.Compare(v.accepted); {
		case known == 1 || c > 0:
			v.accepted, v.payload, alike = r.Accepted, r.Payload, 1
		case c == 0:
			alike++
		}
		if known == cfg.R {
			time.AfterFunc(settleTime, cancel)
		}
		v.confirmed = alike >= cfg.W
		return v.confirmed && known >= cfg.R
	})
	switch {
	case known >= cfg.R:
		return v, nil
	case missing > cfg.N-cfg.R:
		return v, seq.ErrUnknownRegister
	}
	return v, noQuorum("read", known, cfg.R, causes)
}

// prepare gets the promise of an epoch that was never used, and with it what was
// accepted last.
func (o *docOp) prepare(ctx context.Context) (Outcome, seq.Epoch, error) {
	epoch := seq.Epoch{Round: o.g.nextRound(o.session, o.register, o.promised), Session: o.session}
	out := o.g.Prepare(ctx, o.session, []PrepareItem{{Register: o.register, Round: epoch.Round}})[0]
	o.saw(out.Promised)
	if out.State != Won {
		return out, epoch, o.again(out)
	}
	return out, epoch, nil
}

// step writes the document. If mine is true, it is the document of this swap.
func (o *docOp) step(ctx context.Context, epoch seq.Epoch, doc Document, mine bool) (Document, error) {
	if mine {
		o.mine = append(o.mine, epoch) // before it is sent: whatever comes back, it may be there
	}
	item := StepItem{Register: o.register, Round: epoch.Round, Max: doc.Version, Payload: doc.payload()}
	out := o.g.Step(ctx, o.session, []StepItem{item})[0]
	o.saw(out.Promised)
	if out.State != Won {
		return Document{}, o.again(out)
	}
	return doc, nil
}

// again makes a lost race into errAgain and leaves every other error.
func (o *docOp) again(out Outcome) error {
	if errors.Is(out.Err, ErrNack) {
		return fmt.Errorf("%w: %w", errAgain, out.Err)
	}
	return out.Err
}

func (o *docOp) saw(promised seq.Epoch) {
	if o.promised.Less(promised) {
		o.promised = promised
	}
}

// nextRound gives out a round above all that were seen, once only: two changes of
// one session at the same time must not meet in one epoch.
func (g *Group) nextRound(session seq.Session, reg seq.Register, seen seq.Epoch) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := proposer{session, reg}
	g.rounds[p] = max(g.rounds[p], seen.Round) + 1
	return g.rounds[p]
}
