package stream

import (
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// quietFor is the least time that a server has.
const quietFor = 30 * time.Millisecond

// dialogue is a Pair and the messages on its stream.
type dialogue struct {
	*testing.T
	p   *Pair
	way *road
}

func converse(t *testing.T, do func(*dialogue)) {
	synctest.Test(t, func(t *testing.T) {
		way := &road{sent: make(chan *pb.StreamRequest, 1), replies: make(chan *pb.StreamReply)}
		d := &dialogue{t, pair(t.Context(), &peer{opens: way}, time.Hour), way}
		d.p.listening.begin(quietFor)
		do(d)
		d.p.Close(errLost)
		close(way.replies)
	})
}

// ask sends a key of a space.
func (d *dialogue) ask(mode seq.Mode) (s Slot, id uint64) {
	d.Helper()
	s, err := d.p.Add(&seq.Space{Name: string(mode), First: seq.SectionID(len(mode)), Sections: 1, Mode: mode}, seq.Key{UID: 1}, 1, nil)
	if err != nil {
		d.Fatal(err)
	}
	return s, (<-d.way.sent).GetId()
}

func (d *dialogue) answer(id uint64) {
	d.way.replies <- &pb.StreamReply{Id: id, Result: &pb.StreamReply_Next{Next: &pb.BatchNextReply{Results: []*pb.BatchResult{{First: []uint64{7}}}}}}
	synctest.Wait()
}

// silentAfter wants the server to be in doubt half of has from now on, and silent after has.
func (d *dialogue) silentAfter(has time.Duration) {
	d.Helper()
	now := time.Now()
	for _, row := range []struct {
		after         time.Duration
		doubt, silent bool
	}{{has/2 - 1, false, false}, {has / 2, true, false}, {has - 1, true, false}, {has, true, true}} {
		if doubt, silent := d.p.Owing(now.Add(row.after)); doubt != row.doubt || silent != row.silent {
			d.Errorf("after %v: doubt %v, silent %v, want %v, %v", row.after, doubt, silent, row.doubt, row.silent)
		}
	}
}

func done(s Slot) bool {
	synctest.Wait()
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

func TestKeysOfStrictAndExactSpacesAreGivenUpWhenTheirServerIsSilent(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Strict, seq.Exact} {
		converse(t, func(d *dialogue) {
			_, first := d.ask(mode)
			if doubt, _ := d.p.Owing(time.Now().Add(time.Hour)); doubt {
				t.Error("a server is in doubt that was never heard")
			}
			d.answer(first)
			given, id := d.ask(mode)
			kept, _ := d.ask(seq.Ordered)
			d.silentAfter(quietFor)
			d.p.GiveUp()
			if !done(given) || given.Answer(1).Err != errLost {
				t.Errorf("%s: not given up", mode)
			}
			if done(kept) {
				t.Errorf("%s: a key of an ordinary space was given up", mode)
			}
			d.answer(id)
			if doubt, _ := d.p.Owing(time.Now().Add(time.Hour)); doubt {
				t.Error("in doubt, and it owes no strict or exact key")
			}
		})
	}
}

func TestAWordOfAServerGivesItItsTimeAgain(t *testing.T) {
	converse(t, func(d *dialogue) {
		_, first := d.ask(seq.Exact)
		d.answer(first)
		d.ask(seq.Exact)
		time.Sleep(quietFor - 1)
		d.p.Heard(time.Now())
		d.silentAfter(quietFor)
		_, other := d.ask(seq.Exact)
		time.Sleep(quietFor / 3)
		d.answer(other)
		d.silentAfter(quietFor)
	})
}

func TestTheTimeInWhichTheProcessStoodStillItselfDoesNotCount(t *testing.T) {
	converse(t, func(d *dialogue) {
		_, id := d.ask(seq.Exact)
		d.answer(id)
		d.p.Late(time.Hour)
		d.p.Owing(time.Now()) // nothing is owed: that hour is no matter
		_, id = d.ask(seq.Exact)
		d.silentAfter(quietFor)
		time.Sleep(quietFor)
		d.p.Late(quietFor)
		d.silentAfter(quietFor)
		d.answer(id)
		d.ask(seq.Exact)
		d.silentAfter(3 * quietFor) // the answer took so long
	})
}

func TestAServerHasThreeTimesWhatIsUsualAndTwiceAsLongAfterFalseSuspicions(t *testing.T) {
	converse(t, func(d *dialogue) {
		for i, want := range []time.Duration{quietFor, 6 * quietFor} { // the first answer does not count
			_, id := d.ask(seq.Exact)
			time.Sleep(2 * quietFor)
			d.answer(id)
			_, id = d.ask(seq.Exact)
			d.silentAfter(want)
			if i == 0 {
				d.answer(id)
			}
		}
	})
	converse(t, func(d *dialogue) {
		for range 2 {
			_, id := d.ask(seq.Exact)
			time.Sleep(time.Hour / 2)
			d.answer(id)
		}
		d.ask(seq.Exact)
		d.silentAfter(9 * quietFor)
	})
	converse(t, func(d *dialogue) {
		_, id := d.ask(seq.Exact)
		d.answer(id)
		for range 3 {
			_, id = d.ask(seq.Exact)
			d.silentAfter(quietFor)
			d.p.GiveUp()
			d.answer(id)
		}
		d.ask(seq.Exact)
		d.silentAfter(2 * quietFor)
	})
}
