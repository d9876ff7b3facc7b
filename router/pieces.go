package router

import (
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// together is how long keys of a Set that are answered wait for those of others, so that a message has
// one answer where all Sets are well.
const together = time.Millisecond

// piece is the keys of a batch that one Set has.
type piece struct {
	checked
	batch int
	idx   []int // where they stand in the batch; nil: it is the whole batch
}

// bySet takes batches apart, so that keys of one Set do not wait for those of another, which may be
// dead. nil: all keys are of one Set, or nobody takes a part of the answer.
func (s *server) bySet(batches []checked, part func(*pb.BatchNextReply)) (pieces []piece) {
	if part == nil {
		return nil
	}
	sets := map[int]bool{}
	for i, b := range batches {
		at := map[int]int{} // the piece of a Set
		in := s.sdk.SetsOf(b.space, b.uids, b.names)
		if in == nil { // its space is not known: that is said at once
			pieces = append(pieces, piece{checked: b, batch: i})
		}
		for k, set := range in {
			sets[set] = true
			if _, ok := at[set]; !ok {
				at[set] = len(pieces)
				pieces = append(pieces, piece{checked: checked{space: b.space}, batch: i})
			}
			pieces[at[set]].add(b, k)
		}
	}
	if len(sets) < 2 {
		return nil
	}
	return pieces
}

// add puts the key of index k of a batch into the piece. UIDs come before string keys in both.
func (p *piece) add(b checked, k int) {
	p.idx = append(p.idx, k)
	if k < len(b.uids) {
		p.uids = append(p.uids, b.uids[k])
	} else {
		p.names = append(p.names, b.names[k-len(b.uids)])
	}
	p.counts, p.once = append(p.counts, b.countsOf(k, k+1)...), append(p.once, b.onceOf(k, k+1)...)
}

// askPieces asks for all pieces at once and fills out. What is answered goes to part while others are
// waited for.
func askPieces(batches []checked, pieces []piece, out *pb.BatchNextReply, ask func(piece) []client.Range, part func(*pb.BatchNextReply)) {
	for i, b := range batches {
		out.Results[i] = newResult(b)
	}
	var mu sync.Mutex // guards out
	answered := make(chan struct{}, len(pieces))
	go inParallel(len(pieces), func(i int) {
		got := ask(pieces[i])
		mu.Lock()
		defer mu.Unlock()
		fill(out.Results[pieces[i].batch], pieces[i].idx, got)
		answered <- struct{}{}
	})
	var early <-chan time.Time // nil: no answer came since the last part
	for left := len(pieces); left > 0; {
		select {
		case <-answered:
			if left--; early == nil {
				early = time.After(together)
			}
		case <-early:
			early = nil
			mu.Lock()
			now := proto.CloneOf(out)
			mu.Unlock()
			part(now)
		}
	}
}
