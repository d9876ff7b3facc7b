package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
)

// record is a register as an answer showed it.
type record struct {
	register
	exists   bool
	modified int64 // mod revision of its key; 0 if there is none
	body     []byte
	at       int64 // revision of the answer
	// keptSince is when this process first saw the register reserved as it is.
	keptSince time.Duration
}

// before describes how r is behind old. r comes from an answer of the same or a later revision, so a sound
// etcd makes it return "".
func (r record) before(old record) string {
	switch {
	case r.modified < old.modified:
		return fmt.Sprintf("it was written at revision %d, after %d", r.modified, old.modified)
	case r.promised.Less(old.promised):
		return fmt.Sprintf("it is promised to %s, after %s", r.promised, old.promised)
	case r.max < old.max:
		return fmt.Sprintf("its max is %d, after %d", r.max, old.max)
	}
	return ""
}

// same says whether a write of next and body would change nothing.
func (r record) same(next register, body []byte, setBody bool) bool {
	return r.register == next && (!setBody || bytes.Equal(r.body, body))
}

// records are the registers as etcd's answers have shown them.
type records struct {
	cluster *cluster
	watch   *watch
	clock   clock.Clock

	mu   sync.Mutex // guards all below; the rules ask other rooms while it is held
	byID map[seq.Register]record
}

func newRecords(c *cluster, w *watch, clk clock.Clock) *records {
	return &records{cluster: c, watch: w, clock: clk, byID: map[seq.Register]record{}}
}

// of is a register as the newest answer showed it; false if none did.
func (s *records) of(name seq.Register) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.byID[name]
	return r, known
}

// decide applies a rule to a register as it is known. Meanwhile no answer can change it: what the
// session is about to release is so found with ownSessions until it is found here.
func (s *records) decide(name seq.Register, rule func(r record) decision) (on record, known bool, made decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on, known = s.byID[name]
	return on, known, rule(on)
}

// note takes in a record, unless a newer answer has shown it. An error says why the store was put
// back.
func (s *records) note(name seq.Register, r record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.byID[name]
	if had && r.at < old.at {
		return nil
	}
	if why := r.before(old); had && why != "" {
		return fmt.Errorf("%s: %s", name, why)
	}
	switch {
	case r.reserved == 0:
	case had && old.reserved != 0 && old.modified == r.modified:
		r.keptSince = old.keptSince
	default:
		r.keptSince = s.clock.Now()
	}
	s.byID[name] = r
	return nil
}

// taken is note of what gets of a register, and of its body if it is a document, gave.
func (s *records) taken(ctx context.Context, name seq.Register, revision int64, results []Result) error {
	r := record{at: revision}
	if len(results) > 0 && len(results[0].KVs) > 0 {
		kv := results[0].KVs[0]
		var err error
		if r.register, err = decodeRegister(kv); err != nil {
			return err
		}
		r.exists, r.modified = true, kv.Modified
	}
	if len(results) > 1 && len(results[1].KVs) > 0 {
		body, err := open(results[1].KVs[0])
		if err != nil {
			return err
		}
		r.body = body
	}
	if why := s.note(name, r); why != nil {
		return s.cluster.poison(ctx, why.Error())
	}
	return nil
}

// show are the gets that taken wants.
func (s *records) show(r seq.Register) []Op {
	ops := []Op{get(s.cluster.keys.register(r))}
	if r.HasPayload() {
		ops = append(ops, get(s.cluster.keys.body(r)))
	}
	return ops
}

// read looks at registers, and at the sessions.
func (s *records) read(ctx context.Context, regs []seq.Register) error {
	type part struct {
		regs []seq.Register
		ops  []Op
	}
	parts := []part{{ops: []Op{all(s.cluster.keys.sessions())}}}
	for _, r := range regs {
		show := s.show(r)
		last := &parts[len(parts)-1]
		if len(last.ops)+len(show) > maxItems {
			parts = append(parts, part{})
			last = &parts[len(parts)-1]
		}
		last.regs, last.ops = append(last.regs, r), append(last.ops, show...)
	}
	return inParallel(len(parts), func(i int) error {
		a, err := s.cluster.do(ctx, Txn{Then: parts[i].ops})
		if err != nil {
			return err
		}
		results := a.Results
		if i == 0 {
			if err := s.watch.observe(results[0].KVs, a.Revision, false); err != nil {
				return err
			}
			results = results[1:]
		}
		for _, r := range parts[i].regs {
			n := len(s.show(r))
			if err := s.taken(ctx, r, a.Revision, results[:n]); err != nil {
				return err
			}
			results = results[n:]
		}
		return nil
	})
}

// readPage is the number of registers in one transaction of a read by prefix.
const readPage = 2048

// readPrefix looks at all registers whose name starts so, and names them in order.
func (s *records) readPrefix(ctx context.Context, prefix string) ([]seq.Register, error) {
	if err := s.read(ctx, nil); err != nil {
		return nil, err
	}
	var names []seq.Register
	from, end := s.cluster.keys.registers()+prefix, after(s.cluster.keys.registers()+prefix)
	var documents []seq.Register
	for {
		a, err := s.cluster.do(ctx, Txn{Then: []Op{{Kind: Get, Key: from, End: end, Limit: readPage}}})
		if err != nil {
			return nil, err
		}
		kvs := a.Results[0].KVs
		for _, kv := range kvs {
			r := seq.Register(kv.Key[len(s.cluster.keys.registers()):])
			names = append(names, r)
			if r.HasPayload() {
				documents = append(documents, r)
			} else if err := s.taken(ctx, r, a.Revision, []Result{{KVs: []KeyValue{kv}}}); err != nil {
				return nil, err
			}
		}
		if len(kvs) < readPage {
			break
		}
		from = kvs[len(kvs)-1].Key + "\x00"
	}
	if len(documents) == 0 {
		return names, nil
	}
	return names, s.read(ctx, documents)
}
