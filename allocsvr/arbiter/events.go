package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Event is one decision, with its reason.
type Event struct {
	ID      uint64 `json:"id"`
	UnixMS  int64  `json:"ms"`
	Node    string `json:"node"`
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// maxEvents bounds the log of decisions.
const maxEvents = 1000

// Record appends to the log of decisions in the stores, again whenever another writer was faster.
func (r *Routes) Record(ctx context.Context, events []Event) error {
	for len(events) > 0 {
		log, version, err := r.loadEvents(ctx)
		if err != nil {
			return err
		}
		id := uint64(0)
		if len(log) > 0 {
			id = log[len(log)-1].ID
		}
		for _, e := range events {
			id++
			e.ID, e.Node, e.UnixMS = id, r.cfg.Name, r.cfg.Wall().UnixMilli()
			log = append(log, e)
		}
		log = log[max(0, len(log)-maxEvents):]
		body, err := json.Marshal(log)
		if err != nil {
			return fmt.Errorf("encode events: %w", err)
		}
		_, err = r.cfg.Documents.SwapDocument(ctx, r.cfg.Session, seq.EventsRegister, version, body)
		if errors.Is(err, seq.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	}
	return nil
}

// Events returns the log of decisions, the latest last.
func (r *Routes) Events(ctx context.Context) ([]Event, error) {
	log, _, err := r.loadEvents(ctx)
	return log, err
}

func (r *Routes) loadEvents(ctx context.Context) (log []Event, version uint64, err error) {
	doc, err := r.cfg.Documents.LoadDocument(ctx, r.cfg.Session, seq.EventsRegister)
	if err != nil {
		return nil, 0, fmt.Errorf("load events: %w", err)
	}
	if len(doc.Body) > 0 {
		if err := json.Unmarshal(doc.Body, &log); err != nil {
			return nil, 0, fmt.Errorf("decode events: %w", err)
		}
	}
	return log, doc.Version, nil
}
