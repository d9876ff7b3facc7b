package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// defaultWatchWait bounds a long poll that says nothing of it.
	defaultWatchWait = 30 * time.Second
	// eventBeat is the time between two comments of an event stream without events, which proxies and the
	// router itself need to notice a lost connection.
	eventBeat = 15 * time.Second
)

const eventStream = "text/event-stream"

// watchAnswer is the answer of a long poll, and an event.
type watchAnswer struct {
	Last   uint64 `json:"last"`
	Mark   uint64 `json:"mark"`
	Fence  uint64 `json:"fence"`
	Unsure uint32 `json:"unknown_ms"`
	Wait   int64  `json:"wait_ms,omitempty"` // the bound of the wait
}

// events is an answer that goes on.
type events func(w http.ResponseWriter)

// keyWatch is a request to watch one key.
type keyWatch struct {
	key   client.Key
	batch *pb.Batch
	after seq.Seq
	wait  time.Duration
}

// readWatch reads the query of a request.
func readWatch(r *http.Request) (q keyWatch, err error) {
	given, err := query(r, map[string]bool{"space": false, "uid": false, "key": false, "after": false, "wait": false})
	if err != nil {
		return q, err
	}
	if given.Has("uid") == given.Has("key") {
		return q, badArgument("query parameters: expected one of uid and key")
	}
	number := func(name, text string) (n uint64, err error) {
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = badArgument(fmt.Sprintf("query parameter %s: %.40q, expected %s", name, text, wholeNumber))
		}
		return n, err
	}
	q.batch = &pb.Batch{Space: given.Get("space")}
	if given.Has("uid") {
		uid, err := number("uid", given.Get("uid"))
		if err != nil {
			return q, err
		}
		q.key, q.batch.Uids = client.Key{Space: q.batch.Space, UID: seq.UID(uid)}, []uint64{uid}
	} else {
		q.key, q.batch.Keys = client.StringKey(q.batch.Space, given.Get("key")), []string{given.Get("key")}
	}
	if err := q.key.Check(); err != nil {
		return q, err
	}
	if text := given.Get("after"); text != "" {
		after, err := number("after", text)
		if err != nil {
			return q, err
		}
		q.after = seq.Seq(after)
	}
	q.wait = defaultWatchWait
	if text := given.Get("wait"); text != "" {
		if q.wait, err = time.ParseDuration(text); err != nil || q.wait < 0 {
			return q, badArgument(fmt.Sprintf("query parameter wait: %.40q, expected a time such as 30s", text))
		}
	}
	return q, nil
}

// watch waits until the mark of a key is above a number, or sends its changes as events to those who accept
// these.
func (f *front) watch(r *http.Request) (any, error) {
	q, err := readWatch(r)
	if err != nil {
		return nil, err
	}
	if err := f.mayWatch(r.Context(), &pb.WatchRequest{Add: []*pb.Batch{q.batch}}); err != nil {
		return nil, err
	}
	if strings.Contains(r.Header.Get("Accept"), eventStream) {
		if query := r.URL.Query(); query.Has("after") || query.Has("wait") {
			return nil, badArgument("query parameters after and wait: expected for a long poll only, and the request accepts " + eventStream)
		}
		w, err := f.begin(q)
		if err != nil {
			return nil, err
		}
		return events(func(to http.ResponseWriter) {
			defer w.Close()
			f.sendEvents(to, r, w)
		}), nil
	}
	return f.poll(r.Context(), q)
}

// begin watches the key.
func (f *front) begin(q keyWatch) (callerWatch, error) {
	w := f.admitted.watches.open(nil)
	err := w.add(q.key, 0)
	if err != nil {
		w.Close()
	}
	return w, err
}

// poll is the long poll.
func (f *front) poll(ctx context.Context, q keyWatch) (any, error) {
	within := min(q.wait, line.LongestWait)
	m, err := f.admitted.waitIn(ctx, q.key, q.after, within, f.leaving)
	if err != nil {
		return nil, err
	}
	out := watchAnswerOf(m)
	out.Wait = within.Milliseconds()
	return out, nil
}

func watchAnswerOf(m client.Mark) watchAnswer {
	return watchAnswer{Last: uint64(m.Last), Mark: uint64(m.Seq), Fence: uint64(m.Fence), Unsure: unknownMs(m.KnownIn)}
}

// sendEvents sends the present and each change, until the caller leaves.
func (f *front) sendEvents(to http.ResponseWriter, r *http.Request, w callerWatch) {
	within := http.NewResponseController(to)
	to.Header().Set("Content-Type", eventStream)
	to.Header().Set("Cache-Control", "no-store")
	to.Header().Set("X-Content-Type-Options", "nosniff")
	send := func(text string) bool {
		_ = within.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err := to.Write([]byte(text))
		return err == nil && within.Flush() == nil
	}
	for ok := send(": watch\n\n"); ok; {
		beat, cancel := context.WithTimeout(r.Context(), eventBeat)
		u, err := w.wait(beat, f.leaving)
		cancel()
		switch {
		case r.Context().Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded) && u.Err == nil:
			ok = send(":\n\n")
		case err != nil:
			_, what := faultOf(err)
			send("event: error\ndata: " + jsonText(what) + "\n\n")
			return
		default:
			ok = send("event: mark\ndata: " + jsonText(watchAnswerOf(u.Mark)) + "\n\n")
		}
	}
}
