package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// SetImpact is what callers of the keys of one Set saw, from the first fault on.
type SetImpact struct {
	Set        string  `json:"set"`
	Dead       bool    `json:"dead"` // for a time
	Requests   int     `json:"requests"`
	Errors     int     `json:"errors"`
	Unnamed    int     `json:"unnamed"` // of these, other than NO_QUORUM with the Set's name
	P99MS      float64 `json:"p99_ms"`
	MaxPauseMS float64 `json:"max_pause_ms"`
	FirstMS    float64 `json:"first_error_ms"`   // when the first call failed, after the fault; zero if none did
	ErrorP50MS float64 `json:"median_error_ms"`  // how long a call took that failed
	ErrorMaxMS float64 `json:"longest_error_ms"` // at most
	Gaps       uint64  `json:"gaps"`             // of the whole drill
}

// MovesFelt is what callers saw of sections that moved: of the calls that were under way from when their
// section was stopped until those who waited for it were sent on.
type MovesFelt struct {
	Moves    int     `json:"moves"`
	Sections int     `json:"sections"` // that moved, each counted as often as it did
	Calls    int     `json:"calls"`
	P50MS    float64 `json:"p50_ms"`
	P99MS    float64 `json:"p99_ms"`
	P100MS   float64 `json:"p100_ms"`
}

// shares tells of which Set the keys are, while no section moves.
type shares struct {
	space *seq.Space
	m     sets.Map
}

func (h *shares) of(uid seq.UID) string { return h.m.Sets[h.m.Index(h.space.SectionOf(uid))].Name }

// some is a key of a Set.
func (h *shares) some(set string) (uid seq.UID) {
	for uid = 0; h.of(uid) != set && uid < 1<<40; uid += 1 << seq.BlockBits {
	}
	return uid
}

// batch is one of sections that has moved.
type batch struct {
	ids      []seq.SectionID
	from, to time.Duration // callers waited
}

// divide reads which Set has what, and makes room for the callers of a Set that wait until they are told
// that it is dead: the load of the others goes on beside them.
func (d *drill) divide(ctx context.Context) error {
	d.DrillConfig.Load.Callers = max(d.DrillConfig.Load.Callers, 4*d.DrillConfig.Load.Rate)
	of := d.division()
	defer of.conns.Close()
	call, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	m, err := of.root.Map(call)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	_, space, err := d.survey.table(call)
	if err != nil {
		return err
	}
	d.shares = &shares{space, m}
	for _, set := range setNames(d.Nodes) {
		if d.shares.of(d.shares.some(set)) != set {
			return fmt.Errorf("%w: Set %s has no keys of space %q", ErrUnhealthy, set, space.Name)
		}
	}
	return nil
}

// watchMove notes the batches of a move.
func (d *drill) watchMove(m *setadmin.Mover) {
	left, now := sets.Sections(m.Move.Sections), batch{}
	m.Before = func(step string) error {
		switch step {
		case "stop":
			now.from = d.timeline.clock.Now()
		case "arrive":
			now.to = d.timeline.clock.Now()
		}
		return nil
	}
	m.Moved = func(sections int, _ time.Duration) {
		now.ids, left = left[:sections], left[sections:]
		d.moves = append(d.moves, now)
	}
}

// felt measures what the calls of each Set were.
func (d *drill) felt(calls []history.Call, fault time.Duration) (rows []SetImpact) {
	for _, set := range setNames(d.Nodes) {
		theirs := slices.DeleteFunc(slices.Clone(calls), func(c history.Call) bool { return d.shares.of(seq.UID(c.UID)) != set })
		row := SetImpact{Set: set, Dead: set == d.dead}
		checked := history.Check(theirs)
		if row.Gaps = checked.Gaps; d.Own != nil {
			row.Gaps += checked.Below
		}
		slices.SortFunc(theirs, func(a, b history.Call) int { return int(a.End - b.End) })
		var all, failed []time.Duration
		for _, c := range theirs {
			if c.End < fault {
				continue
			}
			all = append(all, c.End-c.Start)
			if c.Err == "" {
				continue
			}
			if len(failed) == 0 {
				row.FirstMS = ms(c.End - fault)
			}
			if failed = append(failed, c.End-c.Start); !strings.Contains(c.Err, seq.ErrNoQuorum.Error()) || !strings.Contains(c.Err, "Set "+set+":") {
				row.Unnamed++
			}
		}
		row.Requests, row.Errors = len(all), len(failed)
		row.P99MS, row.MaxPauseMS = percentile(all, 99), percentile(all, 100)
		row.ErrorP50MS, row.ErrorMaxMS = percentile(failed, 50), percentile(failed, 100)
		rows = append(rows, row)
	}
	return rows
}

// moving measures the calls of sections while they moved.
func (d *drill) moving(calls []history.Call) *MovesFelt {
	out := &MovesFelt{Moves: len(d.faults)}
	var took []time.Duration
	for _, m := range d.moves {
		out.Sections += len(m.ids)
		for _, c := range calls {
			if c.Start < m.to && c.End > m.from && slices.Contains(m.ids, d.shares.space.SectionOf(seq.UID(c.UID))) {
				took = append(took, c.End-c.Start)
			}
		}
	}
	out.Calls = len(took)
	out.P50MS, out.P99MS, out.P100MS = percentile(took, 50), percentile(took, 99), percentile(took, 100)
	return out
}

// percentile in ms; 0 of nothing.
func percentile(all []time.Duration, p int) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return ms(all[min(len(all)-1, len(all)*p/100)])
}

// spread is ErrSpread if the death of a Set was felt by callers of others, and ErrUnnamed if its
// own were not told of it by name.
func spread(rows []SetImpact) (err error) {
	for _, row := range rows {
		switch {
		case !row.Dead && row.Errors > 0:
			err = errors.Join(err, fmt.Errorf("%w: %d of Set %s", ErrSpread, row.Errors, row.Set))
		case row.Unnamed > 0:
			err = errors.Join(err, fmt.Errorf("%w: %d of %d of Set %s", ErrUnnamed, row.Unnamed, row.Errors, row.Set))
		}
	}
	return err
}
