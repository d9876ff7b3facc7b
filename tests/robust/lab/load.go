package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Kinds of calls, as the report counts them.
const (
	callNext     = "next"
	callRange    = "range"
	callBatch    = "batch"
	callHTTP     = "http"
	callSegment  = "segment"
	callID       = "snowflake"
	callFallback = "snowflake, with fallback"
)

// Shape of the load.
const (
	callers     = 256
	callTimeout = 20 * time.Second
	knownUIDs   = 200
	fallbackFor = 5 * time.Second
)

// Load keeps callers at work and records every call. It is open: calls begin at the rate
// whatever becomes of those before, until all callers wait.
type Load struct {
	clock   clock.Clock
	rate    int
	direct  *client.Client // to the owners
	routed  *client.Client // by routers only
	stand   *client.Client // makes IDs by itself while the service is away
	web     *http.Client
	webURL  string
	history history.Recorder
	ids     idBook
	known   []seq.UID

	mu     sync.Mutex     // guards codes
	codes  map[string]int // errors by code
	counts map[string]*atomic.Int64

	jobs  chan job
	stop  chan struct{}
	pacer sync.WaitGroup
	work  sync.WaitGroup
}

type job struct {
	kind string
	roll uint64
}

// idBook are the snowflake IDs that were handed out, in runs.
type idBook struct {
	mu   sync.Mutex // guards runs
	runs []snowflake.Run
}

// StartLoad begins at that many calls a second. End it, then look at it.
func StartLoad(ctx context.Context, l *Lab, rate int) (*Load, error) {
	o := &Load{clock: clock.Boot(), rate: rate, codes: map[string]int{}, counts: map[string]*atomic.Int64{}, jobs: make(chan job), stop: make(chan struct{}),
		web: &http.Client{Timeout: callTimeout}, webURL: "http://" + l.HTTP() + "/v1/next"}
	for _, kind := range []string{callNext, callRange, callBatch, callHTTP, callSegment, callID, callFallback} {
		o.counts[kind] = &atomic.Int64{}
	}
	for range knownUIDs {
		o.known = append(o.known, seq.UID(rand.Uint64()))
	}
	everybody := append(l.Addrs(localcluster.RoleRouter), l.Addrs(localcluster.RoleAlloc)...)
	for _, c := range []struct {
		to  **client.Client
		cfg client.Config
	}{
		{&o.direct, client.Config{Addrs: everybody}},
		{&o.routed, client.Config{Addrs: l.Addrs(localcluster.RoleRouter), Indirect: true}},
		{&o.stand, client.Config{Addrs: everybody, Fallback: &client.Fallback{After: time.Second, Window: fallbackFor}}},
	} {
		made, err := client.New(ctx, c.cfg)
		if err != nil {
			o.End()
			return nil, fmt.Errorf("%w: %w", ErrSetup, err)
		}
		*c.to = made
	}
	for i := range callers {
		o.work.Go(func() { o.call(i) })
	}
	o.pacer.Go(o.pace)
	return o, nil
}

// pace hands jobs out. In a hundred calls there are 80 for sequences of users, 8 of them
// for ranges, 6 for batches and 6 over HTTP; the rest is for IDs and named counters.
func (o *Load) pace() {
	defer close(o.jobs)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := o.clock.Now()
	for issued := 0; ; {
		select {
		case <-o.stop:
			return
		case <-tick.C:
		}
		for due := int((o.clock.Now() - began).Seconds() * float64(o.rate)); issued < due; issued++ {
			select {
			case o.jobs <- job{kindOf(rand.IntN(100)), rand.Uint64()}:
			case <-o.stop:
				return
			}
		}
	}
}

func kindOf(percent int) string {
	for _, k := range []struct {
		below int
		kind  string
	}{{60, callNext}, {68, callRange}, {74, callBatch}, {80, callHTTP}, {88, callSegment}, {96, callID}} {
		if percent < k.below {
			return k.kind
		}
	}
	return callFallback
}

func (o *Load) call(caller int) {
	for j := range o.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		o.one(ctx, caller, j)
		cancel()
		o.counts[j.kind].Add(1)
	}
}

// one makes one call. Half of them go straight to the owners, half by routers.
func (o *Load) one(ctx context.Context, caller int, j job) {
	c := o.direct
	if j.roll%2 == 1 {
		c = o.routed
	}
	uid := o.known[j.roll/2%uint64(len(o.known))]
	switch j.kind {
	case callRange:
		o.take(ctx, c, caller, uid, uint32(2+j.roll>>32%99))
	case callBatch:
		o.batch(ctx, c, caller, j.roll)
	case callHTTP:
		o.overHTTP(ctx, caller, uid)
	case callSegment:
		o.segment(ctx, c, caller, tags[j.roll/2%uint64(len(tags))])
	case callID:
		o.generate(ctx, c, uint32(1+j.roll>>32%20))
	case callFallback:
		o.generate(ctx, o.stand, uint32(1+j.roll>>32%20))
	default:
		if j.roll>>32%10 == 0 {
			uid = seq.UID(rand.Uint64()) // one never asked for before
		}
		o.take(ctx, c, caller, uid, 1)
	}
}

func (o *Load) take(ctx context.Context, c *client.Client, caller int, uid seq.UID, count uint32) {
	call := history.Call{Key: history.Key{UID: uint64(uid)}, Client: caller, Start: o.clock.Now()}
	r, err := c.Take(ctx, client.Key{UID: uid}, count)
	o.add(call, r, err)
}

func (o *Load) add(call history.Call, r client.Range, err error) {
	call.End = o.clock.Now()
	call.First, call.Last, call.Unordered = uint64(r.First), uint64(r.Last), r.Unordered
	if err != nil {
		call.First, call.Last = 0, 0
		call.Err = o.failed(err)
	}
	o.history.Add(call)
}

func (o *Load) batch(ctx context.Context, c *client.Client, caller int, roll uint64) {
	uids := make([]seq.UID, 5)
	for i := range uids {
		uids[i] = o.known[(roll/2+uint64(i)*31)%uint64(len(o.known))]
	}
	began := o.clock.Now()
	ranges, err := c.NextBatch(ctx, "", uids, nil)
	for i, uid := range uids {
		r, failed := client.Range{}, err
		if i < len(ranges) {
			if r = ranges[i]; failed == nil || r.Err == nil && r.First != 0 {
				failed = r.Err
			}
		}
		o.add(history.Call{Key: history.Key{UID: uint64(uid)}, Client: caller, Start: began}, r, failed)
	}
}

func (o *Load) segment(ctx context.Context, c *client.Client, caller int, tag string) {
	call := history.Call{Key: history.Key{Space: "tag " + tag}, Client: caller, Start: o.clock.Now()}
	first, last, err := c.TakeSegment(ctx, tag, 1+uint32(caller%3))
	o.add(call, client.Range{First: first, Last: last}, err)
}

func (o *Load) generate(ctx context.Context, c *client.Client, count uint32) {
	got, err := c.Generate(ctx, "", count)
	if err != nil {
		o.failed(err)
		return
	}
	o.ids.mu.Lock()
	defer o.ids.mu.Unlock()
	o.ids.runs = append(o.ids.runs, got.Runs...)
}

// overHTTP is what a program in another language would do, without a retry of its own.
func (o *Load) overHTTP(ctx context.Context, caller int, uid seq.UID) {
	call := history.Call{Key: history.Key{UID: uint64(uid)}, Client: caller, Start: o.clock.Now()}
	n, err := o.post(ctx, uid)
	o.add(call, client.Range{First: n, Last: n}, err)
}

// errHTTP is an answer other than 200.
var errHTTP = errors.New("http")

func (o *Load) post(ctx context.Context, uid seq.UID) (seq.Seq, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.webURL, bytes.NewReader(fmt.Appendf(nil, `{"uid":"%d"}`, uid)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	reply, err := o.web.Do(req)
	if err != nil {
		return 0, fmt.Errorf("%w: no answer: %w", errHTTP, err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("%w: answer cut short: %w", errHTTP, err)
	}
	if reply.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%w %d: %s", errHTTP, reply.StatusCode, body)
	}
	var answer struct {
		First seq.Seq `json:"first"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("%w: %q: %w", errHTTP, body, err)
	}
	return answer.First, nil
}

// failed counts an error under its code and gives the code.
func (o *Load) failed(err error) string {
	code := rpc.CodeOf(err).String()
	switch {
	case errors.Is(err, errHTTP):
		var status int
		if _, scan := fmt.Sscanf(err.Error(), "http %d", &status); scan == nil {
			code = fmt.Sprint("HTTP ", status)
		} else {
			code = "HTTP without an answer"
		}
	case errors.Is(err, context.DeadlineExceeded):
		code = "call timed out, last: " + code
	case errors.Is(err, client.ErrClosed):
		code = "client closed"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.codes[code]++
	return code
}

// End stops handing out calls and waits for those under way. Safe to call twice.
func (o *Load) End() {
	select {
	case <-o.stop:
	default:
		close(o.stop)
	}
	o.pacer.Wait()
	o.work.Wait()
	for _, c := range []*client.Client{o.direct, o.routed, o.stand} {
		if c != nil {
			_ = c.Close()
		}
	}
	o.web.CloseIdleConnections()
}
