package requestid

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/seqsvr/seqsvr/internal/process/tracing/mark"
	"github.com/seqsvr/seqsvr/snowflake"
)

// server answers with the ID of each request.
func server(t *testing.T, s *Stamp) string {
	srv := httptest.NewServer(s.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, From(r.Context()))
	})))
	t.Cleanup(srv.Close)
	return srv.URL
}

func get(t *testing.T, c *http.Client, ctx context.Context, url string, headers ...string) (seen, said string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		req.Header.Add(Header, h)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp.Header.Get(Header)
}

func TestAnIDThatCameIsPassedOnIfItIsSound(t *testing.T) {
	url := server(t, New(Config{}))
	for _, row := range []struct {
		came []string
		kept bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"7f.a_B:c/d+e=-"}, true},
		{[]string{strings.Repeat("x", MaxLength)}, true},
		{[]string{strings.Repeat("x", MaxLength+1)}, false},
		{[]string{"two words"}, false},
		{[]string{`x" level="ERROR`}, false},
		{[]string{"\xc3\xa4"}, false},
		{[]string{"one", "two"}, false},
	} {
		seen, said := get(t, http.DefaultClient, t.Context(), url, row.came...)
		if seen != said || !Valid(seen) || row.kept != (len(row.came) == 1 && seen == row.came[0]) {
			t.Errorf("%q: the handler saw %q, the answer says %q, kept: %t", row.came, seen, said, row.kept)
		}
	}
	fresh := server(t, New(Config{Fresh: true}))
	if seen, _ := get(t, http.DefaultClient, t.Context(), fresh, "mine"); seen == "mine" || !Valid(seen) {
		t.Errorf("fresh: got %q", seen)
	}
}

func TestAnIDGoesFromServerToServer(t *testing.T) {
	s := New(Config{})
	inner := server(t, s)
	c := &http.Client{Transport: s.RoundTripper(nil)}
	outer := httptest.NewServer(s.HTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, _ := get(t, c, r.Context(), inner)
		_, _ = io.WriteString(w, seen)
	})))
	defer outer.Close()
	if seen, said := get(t, http.DefaultClient, t.Context(), outer.URL, "abc"); seen != "abc" || said != "abc" {
		t.Errorf("the inner server saw %q, the outer one said %q", seen, said)
	}
	if seen, said := get(t, http.DefaultClient, t.Context(), outer.URL); seen != said || seen == "" {
		t.Errorf("the inner server saw %q, the outer one said %q", seen, said)
	}
	if seen, _ := get(t, c, t.Context(), inner); !Valid(seen) {
		t.Errorf("a client without a request of its own sent %q", seen)
	}
	if seen, _ := get(t, c, With(t.Context(), "a"), inner, "b"); seen != "b" {
		t.Errorf("a header of the request was replaced by %q", seen)
	}
}

func TestIDsAreMadeByWhomIsConfiguredOrElseByAUUID(t *testing.T) {
	made := ""
	s := New(Config{New: func() string { return made }})
	for text, kept := range map[string]bool{"42": true, "": false, "a b": false} {
		made = text
		if got := s.fresh(); (got == text) != kept || !Valid(got) {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if got := Of(func() (snowflake.ID, error) { return 7, nil })(); got != "7" {
		t.Errorf("got %q", got)
	}
	if got := Of(func() (snowflake.ID, error) { return 7, errors.New("no window") })(); got != "" {
		t.Errorf("after an error: got %q", got)
	}
}

func TestTheLogAndTheSpanHaveTheID(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	var out bytes.Buffer
	log := slog.New(Logs(slog.NewJSONHandler(&out, nil))).With("app", "test")
	ctx, span := provider.Tracer("test").Start(t.Context(), "request")
	ctx, id := New(Config{}).arrived(ctx, []string{"abc"})
	log.InfoContext(ctx, "served", "status", 200)
	log.Info("of no request")
	span.End()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var first, second map[string]any
	if err := errors.Join(json.Unmarshal([]byte(lines[0]), &first), json.Unmarshal([]byte(lines[1]), &second)); err != nil {
		t.Fatal(err)
	}
	if first[LogKey] != id || first["app"] != "test" || second[LogKey] != nil || id != "abc" {
		t.Errorf("logged %v and %v, want %q", first, second, id)
	}
	attrs := spans.GetSpans()[0].Attributes
	if len(attrs) != 1 || string(attrs[0].Key) != mark.RequestIDKey || attrs[0].Value.AsString() != id {
		t.Errorf("the span has %v", attrs)
	}
}

// health answers Check and Watch with the ID in the header alone, and notes what it saw.
type health struct {
	healthpb.UnimplementedHealthServer
	seen chan string
}

func (h health) Check(ctx context.Context, _ *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	h.seen <- From(ctx)
	return &healthpb.HealthCheckResponse{}, nil
}

func (h health) Watch(_ *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	h.seen <- From(stream.Context())
	return stream.Send(&healthpb.HealthCheckResponse{})
}

func TestCallsAndStreamsOfGRPCCarryTheID(t *testing.T) {
	s, seen := New(Config{}), make(chan string, 1)
	srv := grpc.NewServer(s.ServerOptions()...)
	healthpb.RegisterHealthServer(srv, health{seen: seen})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(lis) }()
	t.Cleanup(srv.Stop)
	dial := func(opts ...grpc.DialOption) healthpb.HealthClient {
		conn, err := grpc.NewClient(lis.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return healthpb.NewHealthClient(conn)
	}
	stamping, plain := dial(s.DialOptions()...), dial()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for what, row := range map[string]struct {
		c    healthpb.HealthClient
		ctx  context.Context
		want string // if empty, any ID will do
	}{
		"of a request":     {stamping, With(ctx, "abc"), "abc"},
		"of none":          {stamping, ctx, ""},
		"by the caller":    {stamping, metadata.AppendToOutgoingContext(With(ctx, "abc"), metadataKey, "def"), "def"},
		"without a client": {plain, ctx, ""},
		"that is unsound":  {plain, metadata.AppendToOutgoingContext(ctx, metadataKey, "a b"), ""},
	} {
		var header metadata.MD
		if _, err := row.c.Check(row.ctx, &healthpb.HealthCheckRequest{}, grpc.Header(&header)); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; !Valid(got) || row.want != "" && got != row.want || header.Get(metadataKey)[0] != got {
			t.Errorf("%s: the server saw %q and said %v, want %q", what, got, header.Get(metadataKey), row.want)
		}
		stream, err := row.c.Watch(row.ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		header, err = stream.Header()
		if got := <-seen; err != nil || !Valid(got) || row.want != "" && got != row.want || header.Get(metadataKey)[0] != got {
			t.Errorf("%s: the stream's server saw %q and said %v (%v), want %q", what, got, header.Get(metadataKey), err, row.want)
		}
	}
}
