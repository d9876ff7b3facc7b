package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/seq"
)

// queue bounds the messages that wait for one caller. With it, one busy recipient does not stop the others
// at once.
const queue = 256

// next takes one number for a message, and retries while that makes sense. If again is true, the message
// had the number before.
type next func(ctx context.Context, j job) (number seq.Seq, again bool, err error)

// report is the output of a replay; its JSON names are fixed.
type report struct {
	Events      uint64  `json:"events"`
	Users       uint64  `json:"users"`      // distinct, senders and recipients
	Recipients  uint64  `json:"recipients"` // distinct: those with a sequence
	Duplicates  uint64  `json:"duplicates"`
	Regressions uint64  `json:"regressions"`
	Gaps        uint64  `json:"gaps"`     // jumps of a user's sequence by more than one
	Skipped     uint64  `json:"skipped"`  // numbers left out by those jumps
	Replayed    uint64  `json:"replayed"` // had their numbers before, with --request-ids
	Rate        float64 `json:"rate"`     // events a second
	P50         int64   `json:"p50_us"`
	P99         int64   `json:"p99_us"`
	Seconds     float64 `json:"seconds"`
}

// job is one message with its place in the log, from 0.
type job struct {
	index   uint64
	line    int
	message msglog.Message
}

// request returns the id of a message, the same whenever the log is replayed: its line, and what
// tells it from the message in that line of another log.
func (j job) request() string {
	return fmt.Sprintf("%d/%d/%d", j.line, j.message.Sender, j.message.Seconds)
}

// caller sends the messages of its share of the recipients, one after the other.
type caller struct {
	jobs    chan job
	tracker *tracker
	latency load.Sheet
	again   uint64 // messages that had their numbers before
}

// replay sends the whole log over so many callers. On an error everything that was
// already answered is in out and in the report.
func replay(ctx context.Context, log *msglog.Reader, take next, callers int, out io.Writer, done func(n uint64)) (report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o := newOutput(out)
	unhook := context.AfterFunc(ctx, o.stop)
	defer unhook()

	crew, latencies := make([]*caller, callers), load.NewRecorder()
	var wg sync.WaitGroup
	start := time.Now()
	for i := range crew {
		c := &caller{jobs: make(chan job, queue), tracker: newTracker(), latency: latencies.Sheet(i)}
		crew[i] = c
		wg.Go(func() {
			if err := c.work(ctx, take, o, done); err != nil {
				cancel(err)
			}
		})
	}
	users := make(map[uint64]struct{})
	err := dispatch(ctx, log, crew, o, users)
	for _, c := range crew {
		close(c.jobs)
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	r := summary(crew, latencies.Result(time.Since(start)))
	r.Users = uint64(len(users))
	return r, errors.Join(err, o.finish())
}

// dispatch reads the log until its end, its first unreadable line, or the end of ctx. It records the users
// in it.
func dispatch(ctx context.Context, log *msglog.Reader, crew []*caller, o *output, users map[uint64]struct{}) error {
	for index := uint64(0); ; index++ {
		m, err := log.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !o.room(index) {
			return nil // ctx says why
		}
		users[m.Sender], users[m.Recipient] = struct{}{}, struct{}{}
		select {
		case crew[m.Recipient%uint64(len(crew))].jobs <- job{index, log.Line(), m}:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *caller) work(ctx context.Context, take next, o *output, done func(uint64)) error {
	defer c.latency.Hand()
	for j := range c.jobs {
		if ctx.Err() != nil {
			continue // only empties the queue
		}
		began := time.Now()
		number, again, err := take(ctx, j)
		if err != nil {
			return fmt.Errorf("message log line %d: next for recipient %d: %w", j.line, j.message.Recipient, err)
		}
		c.latency.Took(int64(time.Since(began)))
		if again {
			c.again++
		}
		c.tracker.got(j.message.Recipient, uint64(number))
		o.put(j.index, j.message, uint64(number))
		done(1)
	}
	return nil
}

func summary(crew []*caller, timed load.Result) report {
	var t tally
	var again uint64
	for _, c := range crew {
		t.add(c.tracker.tally)
		again += c.again
	}
	r := report{
		Events: t.events, Recipients: t.users, Duplicates: t.duplicates, Regressions: t.regressions, Gaps: t.gaps, Skipped: t.skipped, Replayed: again,
		P50: int64(timed.Latency.P50), P99: int64(timed.Latency.P99), Seconds: timed.Seconds,
	}
	if r.Seconds > 0 {
		r.Rate = float64(t.events) / r.Seconds
	}
	return r
}
