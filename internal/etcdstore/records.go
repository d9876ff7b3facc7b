package etcdstore

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// record is a register as an answer showed it.
type record struct {
	register
	exists   bool
	modified int64 // mod revision of its key; 0 if there is none
	body     []byte
	at       int64 // revision of the answer
}

// before says what of r, which an answer of the same or a later revision showed, is less than
// in old; empty: nothing, as it must be.
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

// note takes in a record, unless a newer answer has shown it. The caller holds mu. An error
// says why the store was put back.
func (s *Store) note(name seq.Register, r record) error {
	old, had := s.records[name]
	if had && r.at < old.at {
		return nil
	}
	if why := r.before(old); had && why != "" {
		return fmt.Errorf("%s: %s", name, why)
	}
	s.records[name] = r
	switch kept, is := s.reserved[name]; {
	case r.reserved == 0:
		delete(s.reserved, name)
	case !is || kept.modified != r.modified:
		s.reserved[name] = reservation{modified: r.modified, since: s.cfg.Clock.Now()}
	}
	return nil
}

// taken is note of what gets of a register, and of its body if it is a document, gave.
func (s *Store) taken(ctx context.Context, name seq.Register, revision int64, results []Result) error {
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
	s.mu.Lock()
	why := s.note(name, r)
	s.mu.Unlock()
	if why != nil {
		return s.poison(ctx, why.Error())
	}
	return nil
}

// show are the gets that taken wants.
func (s *Store) show(r seq.Register) []Op {
	ops := []Op{get(s.keys.register(r))}
	if r.Kind() == seq.KindDocument {
		ops = append(ops, get(s.keys.body(r)))
	}
	return ops
}

// A transaction takes maxItems registers at most, with at most two compares and two operations
// each, and maxBytes: etcd takes 1.5 MiB as shipped (--max-request-bytes).
const (
	maxItems = MaxOps - 2
	maxBytes = 1_400_000
)

// maxParallel bounds the transactions of one request that are under way at a time.
const maxParallel = 16

// inParallel calls f for each of n and returns the first error.
func inParallel(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	errs := make([]error, n)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// read looks at registers, and at the sessions.
func (s *Store) read(ctx context.Context, regs []seq.Register) error {
	type part struct {
		regs []seq.Register
		ops  []Op
	}
	parts := []part{{ops: []Op{all(s.keys.sessions())}}}
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
		a, err := s.do(ctx, Txn{Then: parts[i].ops})
		if err != nil {
			return err
		}
		results := a.Results
		if i == 0 {
			if err := s.observe(results[0].KVs, a.Revision, false); err != nil {
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

// readPage is how many registers one transaction of a read by prefix gives.
const readPage = 2048

// readPrefix looks at all registers whose name starts so, and names them in order.
func (s *Store) readPrefix(ctx context.Context, prefix string) ([]seq.Register, error) {
	if err := s.read(ctx, nil); err != nil {
		return nil, err
	}
	var names []seq.Register
	from, end := s.keys.registers()+prefix, after(s.keys.registers()+prefix)
	var documents []seq.Register
	for {
		a, err := s.do(ctx, Txn{Then: []Op{{Kind: Get, Key: from, End: end, Limit: readPage}}})
		if err != nil {
			return nil, err
		}
		kvs := a.Results[0].KVs
		for _, kv := range kvs {
			r := seq.Register(kv.Key[len(s.keys.registers()):])
			names = append(names, r)
			if r.Kind() == seq.KindDocument {
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

// Read implements quorum.Store. Its verdicts are advice; Copies is ErrNoExact.
func (s *Store) Read(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	reply, err := s.readAll(ctx, req)
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("read: %w", err)
	}
	return reply, nil
}

func (s *Store) readAll(ctx context.Context, req quorum.ReadRequest) (quorum.Reply, error) {
	if err := s.admit(req.Ref); err != nil {
		return quorum.Reply{}, err
	}
	if req.Copies {
		return quorum.Reply{}, ErrNoExact
	}
	regs, byPrefix := req.Registers, len(req.Registers) == 0 && req.Prefix != ""
	var err error
	if byPrefix {
		regs, err = s.readPrefix(ctx, req.Prefix)
	} else {
		err = s.read(ctx, regs)
	}
	if err != nil {
		return quorum.Reply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := quorum.Reply{UUID: s.meta.UUID, Results: make([]quorum.Result, len(regs))}
	for i, r := range regs {
		reply.Results[i] = s.look(r, req.Session)
		if byPrefix {
			reply.Results[i].Register = r
		}
	}
	return reply, nil
}
