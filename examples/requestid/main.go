// Command requestid shows IDs of requests: two servers, of which the first asks the second,
// log one request under one snowflake ID, which then tells when it came.
//
//	go run ./examples/requestid
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/seqsvr/seqsvr/client/requestid"
	"github.com/seqsvr/seqsvr/snowflake"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generator makes the IDs of this process. Its worker id must be its own, and its ticks must
// not have been used before: here it is the only process, for a moment. In a fleet take both
// from the service, as docs/ids.md says.
func generator() (*snowflake.Generator, error) {
	layout, err := snowflake.Preset("request")
	if err != nil {
		return nil, err
	}
	now, err := layout.TickAt(time.Now())
	if err != nil {
		return nil, err
	}
	g, err := snowflake.New(layout, 1, 1, now)
	if err != nil {
		return nil, err
	}
	g.Extend(layout.MaxTick())
	return g, nil
}

func run(ctx context.Context, out io.Writer) error {
	ids, err := generator()
	if err != nil {
		return err
	}
	stamp := requestid.New(requestid.Config{New: requestid.Of(func() (snowflake.ID, error) { return ids.Next(ctx) })})
	log := slog.New(requestid.Logs(slog.NewJSONHandler(out, nil)))

	back := httptest.NewServer(stamp.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		log.InfoContext(r.Context(), "back: served")
	})))
	defer back.Close()
	caller := &http.Client{Transport: stamp.RoundTripper(nil)}
	front := httptest.NewServer(stamp.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := ask(r.Context(), caller, back.URL, nil)
		log.InfoContext(r.Context(), "front: asked the back", "error", err)
	})))
	defer front.Close()

	var id string
	if err := ask(ctx, http.DefaultClient, front.URL, &id); err != nil {
		return err
	}
	return tell(out, id)
}

// ask makes a request and, unless id is nil, notes the ID in the answer.
func ask(ctx context.Context, c *http.Client, url string, id *string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	if id != nil {
		*id = resp.Header.Get(requestid.Header)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// tell says when a request came, by its ID alone.
func tell(out io.Writer, text string) error {
	layout, err := snowflake.Preset("request")
	if err != nil {
		return err
	}
	id, err := snowflake.Decimal.Parse(text)
	if err != nil {
		return err
	}
	parts, err := layout.Decode(id)
	if err != nil {
		return err
	}
	at, err := layout.TimeOf(parts.Tick)
	fmt.Fprintf(out, "request %s came at %s\n", text, at.Format(time.RFC3339Nano))
	return err
}
