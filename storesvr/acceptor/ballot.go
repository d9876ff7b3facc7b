package acceptor

import (
	"bytes"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Read shows registers as they are on disk. The verdicts are advice: what a Prepare by
// the session, with a round that is high enough, would meet now. Payloads are shared and
// must not be written to.
func (a *Acceptor) Read(req quorum.ReadRequest, now time.Duration) []quorum.Result {
	if len(req.Registers) == 0 && req.Prefix != "" {
		names := a.registers.withPrefix(req.Prefix)
		results := make([]quorum.Result, 0, len(names))
		for _, r := range names {
			if res := a.read(r, req.Session, req.Preempt, now); res.Verdict != quorum.VerdictUnknown {
				res.Register = r
				results = append(results, res)
			}
		}
		return results
	}
	results := make([]quorum.Result, len(req.Registers))
	for i, r := range req.Registers {
		results[i] = a.read(r, req.Session, req.Preempt, now)
	}
	return results
}

func (a *Acceptor) read(r seq.Register, who seq.Session, preempt bool, now time.Duration) quorum.Result {
	reg := a.registers.find(r)
	st, known := reg.committed()
	if !known {
		return a.resultOf(quorum.VerdictUnknown, r, State{})
	}
	res := a.resultOf(quorum.VerdictOK, r, st)
	res.Payload = st.Payload
	current := reg.now
	if holder, remaining := a.leases.holder(r, current.Promised, now); holder != 0 {
		res.Holder, res.Remaining = holder, remaining
	}
	if b := a.leases.barred(r, current.Promised, who, preempt, now); b.verdict != quorum.VerdictOK {
		res.Verdict, res.Remaining = b.verdict, b.remaining
	}
	if preempt {
		if why := a.leases.over.refusal(r); why != "" {
			res.Verdict, res.Message = quorum.VerdictRefused, why
		}
	}
	return res
}

// Prepare promises epochs, each item by itself. Nothing may be answered before the
// Changes are committed. ErrInvariant is fatal; seq.ErrBadArgument changed nothing.
func (a *Acceptor) Prepare(req quorum.PrepareRequest, now time.Duration) ([]quorum.Result, error) {
	if req.Session == 0 {
		return nil, fmt.Errorf("prepare: %w: session 0", seq.ErrBadArgument)
	}
	results := make([]quorum.Result, len(req.Items))
	for i, item := range req.Items {
		res, err := a.prepare(item, req.Session, req.Preempt, now)
		if err != nil {
			return nil, fmt.Errorf("prepare %s: %w", item.Register, err)
		}
		results[i] = res
	}
	return results, nil
}

func (a *Acceptor) prepare(item quorum.PrepareItem, who seq.Session, preempt bool, now time.Duration) (quorum.Result, error) {
	r, e := item.Register, seq.Epoch{Round: item.Round, Session: who}
	reg := a.registers.find(r)
	st := reg.state()
	if reg == nil {
		if !item.Create || !r.OnDemand() {
			return a.resultOf(quorum.VerdictUnknown, r, State{}), nil
		}
		if err := r.Validate(); err != nil {
			return a.refused(r, st, err.Error()), nil
		}
	}
	if preempt {
		if why := a.leases.over.refusal(r); why != "" {
			return a.refused(r, st, why), nil
		}
	}
	if e.Less(st.Promised) {
		return a.resultOf(quorum.VerdictNack, r, st), nil
	}
	if a.leases.ended.has(who) {
		return a.refused(r, st, "the session has ended"), nil
	}
	if b := a.leases.barred(r, st.Promised, who, preempt, now); b.verdict != quorum.VerdictOK {
		res := a.resultOf(b.verdict, r, st)
		res.Holder, res.Remaining = b.holder, b.remaining
		return res, nil
	}
	if e != st.Promised {
		a.leases.vacate(r, st.Promised, who)
		st.Promised = e
		if err := a.set(r, reg, st); err != nil {
			return quorum.Result{}, err
		}
	}
	res := a.resultOf(quorum.VerdictOK, r, st)
	res.Payload, res.Seal = st.Payload, a.leases.seals[r]
	return res, nil
}

// Step accepts values, each item by itself, whoever holds a lease: the proposer has the
// promises of W stores, so a lease here that stands against it is one of fewer than W.
// Nothing may be answered before the Changes and then the Entries are committed. ErrInvariant is fatal;
// seq.ErrBadArgument changed nothing. The Acceptor keeps the payloads and logs of the request.
func (a *Acceptor) Step(req quorum.StepRequest, limits Limits) ([]quorum.Result, error) {
	if req.Session == 0 {
		return nil, fmt.Errorf("step: %w: session 0", seq.ErrBadArgument)
	}
	results := make([]quorum.Result, len(req.Items))
	for i, item := range req.Items {
		res, err := a.step(item, req.Session, limits)
		if err != nil {
			return nil, fmt.Errorf("step %s to %d: %w", item.Register, item.Max, err)
		}
		results[i] = res
	}
	return results, nil
}

func (a *Acceptor) step(item quorum.StepItem, who seq.Session, limits Limits) (quorum.Result, error) {
	r, e := item.Register, seq.Epoch{Round: item.Round, Session: who}
	reg := a.registers.find(r)
	st := reg.state()
	if reg == nil {
		return a.resultOf(quorum.VerdictUnknown, r, State{}), nil
	}
	if e.Less(st.Promised) {
		return a.resultOf(quorum.VerdictNack, r, st), nil
	}
	c := a.copyOf(r)
	if why := quorum.Refusal(item, quorum.StepLimits{Payload: MaxPayload, Mark: limits.WorkerMax, Exact: c != nil}); why != "" {
		return a.refused(r, st, why), nil
	}
	if c != nil && len(item.Log) > 0 { // without records it is the promise alone, as an owner begins
		return a.append(item, e, reg, c, limits)
	}
	next := st
	next.Promised, next.Accepted, next.Max = e, e, max(st.Max, item.Max)
	// Two steps under one epoch are by one proposer, in the order of their max; the
	// older one may arrive late and must not take the newer payload back.
	if r.HasPayload() && (e != st.Accepted || item.Max >= st.PayloadMax) {
		next.Payload, next.PayloadMax = item.Payload, item.Max
	}
	if !same(st, next) {
		if e != st.Promised {
			a.leases.vacate(r, st.Promised, who)
		}
		if err := a.set(r, reg, next); err != nil {
			return quorum.Result{}, err
		}
	}
	return a.resultOf(quorum.VerdictOK, r, next), nil
}

func same(a, b State) bool {
	return a.Promised == b.Promised && a.Accepted == b.Accepted && a.Max == b.Max &&
		a.PayloadMax == b.PayloadMax && bytes.Equal(a.Payload, b.Payload)
}

// resultOf is the state as everybody is shown it. A register counts for no less than the
// floor of its kind, and one that there is not for as much as one that was just made: what
// the eras before handed out under it may not have been in the backup.
func (a *Acceptor) resultOf(v quorum.Verdict, r seq.Register, st State) quorum.Result {
	floor := a.floors.Of(r)
	return quorum.Result{Verdict: v, Promised: st.Promised, Accepted: st.Accepted, Max: max(st.Max, floor), Floor: floor}
}

func (a *Acceptor) refused(r seq.Register, st State, why string) quorum.Result {
	res := a.resultOf(quorum.VerdictRefused, r, st)
	res.Message = why
	return res
}
