package console

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxStreams are open at a time, and a half of them by one address; more poll.
	maxStreams = 64
	// streamLife is the length of a stream. A page that reads asks again. A caller that does not read loses
	// its place this way.
	streamLife = 10 * time.Second
	// pollPatience bounds the wait of a poll for the first snapshot.
	pollPatience = 2 * patience
)

// errBusy: too many look at once.
var errBusy = errors.New("too many at once: come again in a moment")

// wantedBy reads the topics of a request.
func wantedBy(r *http.Request) (topicSet, error) {
	want, err := parseTopics(r.URL.Query().Get("topics"))
	if err != nil {
		return want, fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	return want, nil
}

// poll answers with one snapshot.
func (c *Console) poll(w http.ResponseWriter, r *http.Request) {
	want, err := wantedBy(r)
	if err != nil {
		fail(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pollPatience)
	defer cancel()
	s, err := c.shared.next(ctx, want, 0)
	if err != nil {
		fail(w, fmt.Errorf("no snapshot: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	out, end := packed(w, r)
	_, _ = out.Write(s.message(want, time.Now())) // the browser has left
	_ = end()
}

// stream sends each snapshot as a server-sent event for streamLife, while the browser stays and may
// look.
func (c *Console) stream(w http.ResponseWriter, r *http.Request) {
	want, err := wantedBy(r)
	if err == nil && !c.streams.Draw(r.RemoteAddr, 1) {
		c.cfg.Refused.Note(rpc.RefusedConnections, r.RemoteAddr)
		err = errBusy
	}
	if err != nil {
		fail(w, err)
		return
	}
	defer c.streams.Draw(r.RemoteAddr, -1)
	ctx, cancel := context.WithTimeout(r.Context(), c.streamLife)
	defer cancel()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx sends on what it gets
	out, end := packed(w, r)
	defer end()
	for after := uint64(0); ; {
		s, err := c.shared.next(ctx, want, after)
		if err == nil {
			err = c.may(r, pb.Admin_Status_FullMethodName)
		}
		if err != nil {
			return
		}
		after = s.number
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := fmt.Fprintf(out, "data: %s\n\n", s.message(want, time.Now())); err != nil {
			return
		}
		if zip, ok := out.(*gzip.Writer); ok && zip.Flush() != nil {
			return
		}
		if control.Flush() != nil {
			return
		}
	}
}

// packed compresses an answer for a browser that can read it: snapshots of thousands of sections are
// mostly alike. end writes what is left.
func packed(w http.ResponseWriter, r *http.Request) (out io.Writer, end func() error) {
	w.Header().Set("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() error { return nil }
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails for an unknown level alone
	return zip, zip.Close
}
