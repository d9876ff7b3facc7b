package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/seq"
)

// webError is an HTTP answer other than 200.
type webError struct {
	status int
	body   string
}

func (e *webError) Error() string { return fmt.Sprintf("HTTP status %d: %.200s", e.status, e.body) }
func (e *webError) code() string  { return "HTTP_" + strconv.Itoa(e.status) }

// errAnswer: the other side does not speak as a router does.
var errAnswer = errors.New("not a router's answer")

// httpCalls speaks HTTP/1.1 itself, a connection a caller: a library's client costs
// more than the router, and it is the router that is to be measured.
func httpCalls(ctx context.Context, r *rig) (load.Call, error) {
	probe, err := net.DialTimeout("tcp", r.o.http, min(findTimeout, r.o.Timeout))
	if err != nil {
		return nil, fmt.Errorf("no answer at --http %s: %w", r.o.http, err)
	}
	_ = probe.Close()
	webs, draws := make([]web, r.o.callers), r.draws()
	r.ends = append(r.ends, func() {
		for i := range webs {
			webs[i].close()
		}
	})
	return func(ctx context.Context, caller int) (int, error) {
		uid, w := draws[caller].One(), &webs[caller]
		before := r.rising.Before(uid)
		n, err := w.next(ctx, r.o, uid)
		if err != nil {
			return 0, err
		}
		r.rising.After(before, n, n)
		return 1, nil
	}, nil
}

// web is one caller's connection. For one goroutine.
type web struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte
	till time.Time // the connection's deadline
}

func (w *web) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// next calls POST /v1/next. After an error other than an HTTP status it closes the connection, and the next
// call makes a new connection.
func (w *web) next(ctx context.Context, o *options, uid seq.UID) (seq.Seq, error) {
	n, err := w.ask(ctx, o, uid)
	var refused *webError
	if err != nil && !errors.As(err, &refused) {
		w.close()
	}
	return n, err
}

func (w *web) ask(ctx context.Context, o *options, uid seq.UID) (seq.Seq, error) {
	if err := w.connect(ctx, o); err != nil {
		return 0, err
	}
	body := append(w.body[:0], `{"uid":`...)
	body = strconv.AppendUint(body, uint64(uid), 10)
	if o.space != "" {
		body = append(body, `,"space":`...)
		body = strconv.AppendQuote(body, o.space)
	}
	w.body = append(body, '}')
	out := append(w.out[:0], "POST /v1/next HTTP/1.1\r\nHost: "...)
	out = append(out, o.http...)
	out = append(out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(len(w.body)), 10)
	out = append(append(out, "\r\n\r\n"...), w.body...)
	w.out = out
	if _, err := w.conn.Write(out); err != nil {
		return 0, err
	}
	return w.answer()
}

// connect dials if there is no connection. A deadline is good for a while: setting it
// for each call would cost as much as the call.
func (w *web) connect(ctx context.Context, o *options) error {
	if w.conn == nil {
		dialer := net.Dialer{Timeout: o.Timeout}
		conn, err := dialer.DialContext(ctx, "tcp", o.http)
		if err != nil {
			return err
		}
		w.conn, w.in, w.till = conn, bufio.NewReader(conn), time.Time{}
	}
	if time.Until(w.till) < o.Timeout {
		w.till = time.Now().Add(2 * o.Timeout)
		return w.conn.SetDeadline(w.till)
	}
	return nil
}

// answer reads one response.
func (w *web) answer() (seq.Seq, error) {
	line, err := w.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(line)
	if len(fields) < 2 || !bytes.HasPrefix(fields[0], []byte("HTTP/1.")) {
		return 0, fmt.Errorf("%w: %.80q", errAnswer, line)
	}
	status, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0, fmt.Errorf("%w: %.80q", errAnswer, line)
	}
	length, err := w.length()
	if err != nil {
		return 0, err
	}
	w.body = append(w.body[:0], make([]byte, length)...)
	if _, err := io.ReadFull(w.in, w.body); err != nil {
		return 0, err
	}
	if status != 200 {
		return 0, &webError{status, string(w.body)}
	}
	return firstOf(w.body)
}

// length reads the headers for the length of the body.
func (w *web) length() (int, error) {
	length := -1
	for {
		line, err := w.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil || length < 0 || length > 1<<20 {
				return 0, fmt.Errorf("%w: length %.40q", errAnswer, value)
			}
		}
	}
	if length < 0 {
		return 0, fmt.Errorf("%w: no Content-Length", errAnswer)
	}
	return length, nil
}

// firstOf finds the number in the JSON of an answer.
func firstOf(body []byte) (seq.Seq, error) {
	const name = `"first":`
	at := bytes.Index(body, []byte(name))
	if at < 0 {
		return 0, fmt.Errorf("%w: no number in %.80q", errAnswer, body)
	}
	n, digits := seq.Seq(0), 0
	for _, b := range bytes.TrimLeft(body[at+len(name):], " ") {
		if b < '0' || b > '9' {
			break
		}
		n = n*10 + seq.Seq(b-'0')
		digits++
	}
	if digits == 0 || n == 0 || n > seq.MaxSeq {
		return 0, fmt.Errorf("%w: no number in %.80q", errAnswer, body)
	}
	return n, nil
}
