package rounds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Shape of the load.
const (
	callers     = 256
	callTimeout = 20 * time.Second
	knownUIDs   = 200
	newUIDs     = 10 // percent
	fallbackFor = 5 * time.Second
)

// calls are what callers do beside asking for the next number of a UID. In a hundred
// calls there are 65 for sequences of users, 8 of them for ranges, 6 for batches, 6 over HTTP and 6 for
// string keys; 15 are for the exact space, with ids. The rest is for IDs and named counters.
type calls struct {
	onces  *lab.Onces     // of the exact space
	alone  *client.Client // makes IDs by itself while the service is away
	web    *http.Client
	webURL string
	ids    idBook

	mu    sync.Mutex     // guards codes
	codes map[string]int // errors by code
}

// idBook are the snowflake IDs that were handed out, in runs.
type idBook struct {
	mu   sync.Mutex // guards runs
	runs []snowflake.Run
}

// startLoad begins at that many calls a second. Half of the calls go straight to the
// owners, half by routers.
func (s *Site) startLoad(ctx context.Context, rate int) (*calls, *lab.Load, error) {
	space := seq.Space{Name: exactSpace, Window: seq.MaxWindow}
	o := &calls{codes: map[string]int{}, onces: lab.NewOnces(space, s.Patience), web: &http.Client{Timeout: callTimeout}, webURL: "http://" + s.Own.HTTP() + "/v1/next"}
	var err error
	o.alone, err = client.New(ctx, client.Config{Addrs: s.Addrs(router, alloc), Fallback: &client.Fallback{After: time.Second, Window: fallbackFor}})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	kinds := o.kinds()
	if s.cfg.Sets > 1 { // the root has all else, and there are scenarios of one cluster for it
		kinds = o.ofSets()
	}
	load, err := lab.StartLoad(ctx, s.Cluster, lab.LoadConfig{
		Callers: callers, UIDs: knownUIDs, New: newUIDs, Rate: rate, Timeout: callTimeout, Routed: true, Reason: o.failed,
		Kinds: kinds,
	})
	if err != nil {
		o.close()
		return nil, nil, fmt.Errorf("%w: %w", ErrSetup, err)
	}
	return o, load, nil
}

// kinds returns the calls of a cluster, and ofSets the calls of a cluster divided into Sets, in percent.
func (o *calls) kinds() []lab.Kind {
	return []lab.Kind{
		lab.NextKind(39),
		{Name: "string key", Percent: 6, Call: stringKey},
		o.onces.Kind(15),
		{Name: "range", Percent: 8, Call: ranges},
		{Name: "batch", Percent: 6, Call: batch},
		{Name: "http", Percent: 6, Call: o.overHTTP},
		{Name: "segment", Percent: 8, Call: segment},
		{Name: "snowflake", Percent: 8, Call: func(ctx context.Context, j lab.Job) { o.generate(ctx, j, j.Client) }},
		{Name: "snowflake, with fallback", Percent: 4, Call: func(ctx context.Context, j lab.Job) { o.generate(ctx, j, o.alone) }},
	}
}

func (o *calls) ofSets() []lab.Kind {
	return []lab.Kind{
		lab.NextKind(54),
		{Name: "string key", Percent: 6, Call: stringKey},
		{Name: "range", Percent: 12, Call: ranges},
		{Name: "batch", Percent: 12, Call: batch},
		{Name: "http", Percent: 8, Call: o.overHTTP},
		{Name: "segment", Percent: 4, Call: segment},
		{Name: "snowflake", Percent: 4, Call: func(ctx context.Context, j lab.Job) { o.generate(ctx, j, j.Client) }},
	}
}

func ranges(ctx context.Context, j lab.Job) { j.Take(ctx, uint32(2+j.Random%99)) }

func (o *calls) close() {
	_ = o.alone.Close()
	o.web.CloseIdleConnections()
}

func batch(ctx context.Context, j lab.Job) {
	uids := make([]seq.UID, 5)
	for i := range uids {
		uids[i] = j.Known(j.Random + uint64(i)*31)
	}
	began := j.Clock.Now()
	ranges, err := j.Client.NextBatch(ctx, "", uids, nil)
	for i, uid := range uids {
		r, failed := client.Range{}, err
		if i < len(ranges) {
			if r = ranges[i]; failed == nil || r.Err == nil && r.First != 0 {
				failed = r.Err
			}
		}
		j.Record(history.Key{UID: uint64(uid)}, began, r, failed)
	}
}

func segment(ctx context.Context, j lab.Job) {
	tag, began := tags[j.Random%uint64(len(tags))], j.Clock.Now()
	first, last, err := j.Client.TakeSegment(ctx, tag, 1+uint32(j.Caller%3))
	j.Record(history.Key{Space: "tag " + tag}, began, client.Range{First: first, Last: last}, err)
}

func (o *calls) generate(ctx context.Context, j lab.Job, c *client.Client) {
	got, err := c.Generate(ctx, "", uint32(1+j.Random%20))
	if err != nil {
		o.failed("", err)
		return
	}
	o.ids.mu.Lock()
	defer o.ids.mu.Unlock()
	o.ids.runs = append(o.ids.runs, got.Runs...)
}

// overHTTP is what a program in another language would do, without a retry of its own.
func (o *calls) overHTTP(ctx context.Context, j lab.Job) {
	uid, began := j.NextUID(), j.Clock.Now()
	n, err := o.post(ctx, uid)
	j.Record(history.Key{UID: uint64(uid)}, began, client.Range{First: n, Last: n}, err)
}

// errHTTP is an answer other than 200.
var errHTTP = errors.New("http")

func (o *calls) post(ctx context.Context, uid seq.UID) (seq.Seq, error) {
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
func (o *calls) failed(_ string, err error) string {
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
