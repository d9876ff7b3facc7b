package console_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/ops/console"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait.
const patience = 30 * time.Second

// site is a console in front of a real cluster of one AllocSvr.
type site struct {
	*httptest.Server
	sdk     *client.Client
	alloc   *allocsvr.Server
	console *console.Console
	from    string // address of the streams; if empty, any will do
}

func start(t *testing.T, change func(*console.Config), more ...seq.Space) *site {
	t.Helper()
	cfg := allocsvr.DefaultConfig()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Lease = "alloc-1", "127.0.0.1:0", harness.Stores(t, 1, append([]seq.Space{{Sections: 8, Step: 100}}, more...)...), 5*time.Second
	alloc, err := allocsvr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "allocsvr", alloc.Run)
	sdk, err := client.New(t.Context(), client.Config{Addrs: []string{alloc.Addr()}, Lazy: true, AttemptTimeout: patience}) // what is tried twice is taken twice
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := sdk.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	shown := console.Config{Server: "router-1", Client: sdk}
	if change != nil {
		change(&shown)
	}
	c := console.New(shown)
	t.Cleanup(c.Close)
	s := &site{Server: httptest.NewServer(c), sdk: sdk, alloc: alloc, console: c}
	t.Cleanup(s.Close)
	s.Client().Timeout = patience
	return s
}

// take makes the cluster serve, and takes numbers of a UID.
func (s *site) take(t *testing.T, uid seq.UID, n uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.sdk.Take(ctx, client.Key{UID: uid}, n); err != nil {
		t.Fatal(err)
	}
}

func (s *site) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	return s.ask(t, http.MethodGet, path, "")
}

func (s *site) ask(t *testing.T, method, path, host string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	reply, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply, string(body)
}

// look reads a part of a snapshot, which may be an error.
func (s *site) look(t *testing.T, name string) json.RawMessage {
	t.Helper()
	reply, body := s.get(t, "/api/snapshot?topics="+name)
	var parts map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &parts); err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s %v: %.500s", reply.Status, err, body)
	}
	return parts[name]
}

// part reads a part of a snapshot. One that took its node too long is an error, for once.
func (s *site) part(t *testing.T, name string, into any) {
	t.Helper()
	var got json.RawMessage
	harness.Until(t, name+" without an error", func() bool {
		got = s.look(t, name)
		return !bytes.HasPrefix(got, []byte(`{"error"`))
	})
	if err := json.Unmarshal(got, into); err != nil {
		t.Fatalf("%s: %v: %.500s", name, err, got)
	}
}

var everyPath = []string{"/", "/assets/app.js", "/api/snapshot", "/api/stream", "/api/uid?uid=1", "/api/id?id=1", "/nothing"}

func TestNothingButGETIsAnswered(t *testing.T) {
	s := start(t, nil)
	for _, path := range everyPath {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"} {
			if reply, _ := s.ask(t, method, path, ""); reply.StatusCode != http.StatusMethodNotAllowed || reply.Header.Get("Allow") != "GET" {
				t.Errorf("%s %s: %s, Allow %q", method, path, reply.Status, reply.Header.Get("Allow"))
			}
		}
	}
}

func TestOnlyRequestsThatAreMeantForUsAreAnswered(t *testing.T) {
	s := start(t, func(c *console.Config) { c.Names = browser.NewNames("console-hosts", "", []string{"seq.example.net"}) })
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:7470": 200, "[::1]:7470": 200, "10.1.2.3": 200, "localhost": 200, "LocalHost:1": 200,
		"seq.example.net": 200, "SEQ.example.net:443": 200,
		"seq.example.net.": 200, "evil.example": 421, "evil.example:7470": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "seq.example.net.evil.example": 421,
	} {
		for _, path := range []string{"/", "/assets/app.js", "/api/uid?uid=x"} {
			reply, body := s.ask(t, http.MethodGet, path, host)
			if got := reply.StatusCode; (got == http.StatusMisdirectedRequest) != (want == 421) {
				t.Errorf("Host %s of %s: %d %.100s, want %d", host, path, got, body, want)
			}
		}
	}
}

func TestEveryAnswerForbidsWhatAPageDoesNotNeed(t *testing.T) {
	s := start(t, nil)
	for _, path := range everyPath {
		if strings.HasSuffix(path, "stream") {
			continue // as the others, and it does not end
		}
		reply, _ := s.get(t, path)
		policy := reply.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if got := reply.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		if got := reply.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: X-Content-Type-Options %q", path, got)
		}
	}
}

var (
	inline  = regexp.MustCompile(`(?i)<script(?:[^>]*[^/])?>[^<]|<style|\sstyle=|\son[a-z]+=`)
	address = regexp.MustCompile(`(?:href|src)="([^"]*)"|from '([^']*)'|ask\('([^']*)'`)
)

func TestPagesHaveNothingInlineAndRelativeAddressesAlone(t *testing.T) {
	s := start(t, nil)
	_, page := s.get(t, "/")
	if found := inline.FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
	files := map[string]string{"the page": page}
	entries, err := filepath.Glob("assets/*.js")
	if err != nil || len(entries) < 10 {
		t.Fatalf("%v: %v", entries, err)
	}
	for _, name := range entries {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	seen := 0
	for name, text := range files {
		for _, found := range address.FindAllStringSubmatch(text, -1) {
			at := found[1] + found[2] + found[3]
			if seen++; strings.HasPrefix(at, "/") || strings.Contains(at, ":") {
				t.Errorf("%s: address %q is not relative", name, at)
			}
			if strings.HasPrefix(at, "assets/") {
				if reply, _ := s.get(t, "/"+at); reply.StatusCode != http.StatusOK {
					t.Errorf("%s: %s is %s", name, at, reply.Status)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("found %d addresses, expected them all", seen)
	}
}

// mostBytes is what all of it may weigh, compressed.
const mostBytes = 100_000

func TestAllOfItWeighsLittle(t *testing.T) {
	s := start(t, nil)
	entries, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/"}
	for _, e := range entries {
		paths = append(paths, "/assets/"+e.Name())
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	total, served := int64(0), 0
	for _, path := range paths {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		reply, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
		if reply.StatusCode == http.StatusOK {
			total += n
			served++
		}
	}
	if t.Logf("%d files, %d bytes", served, total); total > mostBytes || served < 15 {
		t.Errorf("%d files have %d bytes, expected at most %d", served, total, mostBytes)
	}
}

func TestWhatOthersWroteIsAsTheyWroteIt(t *testing.T) {
	list, err := os.ReadFile("assets/uPlot.sha256")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		text, err := os.ReadFile(filepath.Join("assets", name))
		if got := sha256.Sum256(text); err != nil || hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another checksum than in uPlot.sha256 (%v)", name, err)
		}
	}
	if all, _ := filepath.Glob("assets/uPlot.*"); len(all) != len(lines)+1 {
		t.Errorf("%d files of uPlot, %d checksums", len(all)-1, len(lines))
	}
}

func TestASnapshotSaysHowTheClusterIs(t *testing.T) {
	calls := console.Calls{Ended: 5}
	s := start(t, func(c *console.Config) { c.Calls = func() console.Calls { return calls } })
	s.take(t, 42, 3)
	var status struct {
		Server string `json:"server"`
		Status struct {
			Health   string   `json:"health"`
			Problems []string `json:"problems"`
			Allocs   []struct {
				Name    string `json:"name"`
				Numbers uint64 `json:"numbers"`
			} `json:"allocs"`
		} `json:"status"`
		Traffic []map[string]float64 `json:"traffic"`
	}
	harness.Until(t, "the cluster is healthy in the console", func() bool {
		s.part(t, "status", &status)
		return status.Status.Health == "healthy"
	})
	if a := status.Status.Allocs; status.Server != "router-1" || len(a) != 1 || a[0].Name != "alloc-1" || a[0].Numbers != 3 || len(status.Traffic) == 0 {
		t.Errorf("got %+v", status)
	}
	var sections struct {
		Nodes          []string `json:"nodes"`
		Owner, Desired []int
		Max            []uint64
	}
	harness.Until(t, "all sections have their owner in the console", func() bool {
		s.part(t, "sections", &sections)
		return fmt.Sprint(sections.Owner, sections.Nodes) == "[0 0 0 0 0 0 0 0] [alloc-1]"
	})
	if len(sections.Desired) != 8 || len(sections.Max) != 8 {
		t.Errorf("got %+v", sections)
	}
	var events []struct{ Kind, Reason string }
	harness.Until(t, "at least the first table among the events", func() bool {
		s.part(t, "events", &events)
		return len(events) > 0
	})
	if events[0].Reason == "" {
		t.Errorf("events %+v, want the first table with its reason", events)
	}
}

func TestNamespacesAndTagsAreShown(t *testing.T) {
	s := start(t, nil)
	s.take(t, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := rpc.Dial(s.alloc.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pb.NewSegmentClient(conn).Put(ctx, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "orders", MinStep: 50}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.sdk.TakeSegment(ctx, "orders", 7); err != nil {
		t.Fatal(err)
	}
	if _, err := s.sdk.NextID(ctx, ""); err != nil {
		t.Fatal(err)
	}
	var ids struct {
		Namespaces []struct {
			Name    string
			Used    bool
			Held    int
			Workers []struct{ Node string }
		}
	}
	held := 0
	harness.Until(t, "the namespace that was used is shown with its worker id", func() bool {
		s.part(t, "ids", &ids)
		for _, ns := range ids.Namespaces {
			if ns.Used && ns.Held == 1 && len(ns.Workers) == 1 && ns.Workers[0].Node == "alloc-1" {
				held++
			}
		}
		return held > 0
	})
	var tags struct {
		Tags []struct {
			Tag, Node, State string
			Current          uint64
			MinStep          uint64 `json:"min_step"`
			Buffers          []struct{ Left uint64 }
		}
	}
	harness.Until(t, "the tag is shown with its numbers", func() bool {
		s.part(t, "segments", &tags)
		return len(tags.Tags) == 1 && tags.Tags[0].Current == 7
	})
	if one := tags.Tags[0]; one.Tag != "orders" || one.Node != "alloc-1" || one.State != "owned" || one.MinStep != 50 || len(one.Buffers) == 0 {
		t.Errorf("got %+v", one)
	}
}

// stream opens one, and gives its messages.
func (s *site) stream(ctx context.Context, t *testing.T, packed bool) (*http.Response, func() map[string]json.RawMessage) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/stream?topics=events", nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := net.Dialer{}
	if s.from != "" {
		dial.LocalAddr = &net.TCPAddr{IP: net.ParseIP(s.from)}
	}
	transport := &http.Transport{DisableCompression: true, DialContext: dial.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	if packed {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	reply, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	var in io.Reader = reply.Body
	if packed {
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewReader(in)
	return reply, func() (m map[string]json.RawMessage) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return nil
			}
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				if err := json.Unmarshal([]byte(text), &m); err != nil {
					t.Errorf("%v: %.200s", err, text)
				}
				return m
			}
		}
	}
}

func TestAStreamSendsOneSnapshotAfterTheOther(t *testing.T) {
	s := start(t, nil)
	s.take(t, 1, 1)
	for _, packed := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		reply, next := s.stream(ctx, t, packed)
		if kind := reply.Header.Get("Content-Type"); kind != "text/event-stream" || (reply.Header.Get("Content-Encoding") == "gzip") != packed {
			t.Errorf("Content-Type %q, Content-Encoding %q", kind, reply.Header.Get("Content-Encoding"))
		}
		last := ""
		for range 3 {
			m := next()
			if m["status"] == nil || m["events"] == nil || m["sections"] != nil || string(m["number"]) == last {
				t.Fatalf("after %s: got %s with %d parts", last, m["number"], len(m))
			}
			last = string(m["number"])
		}
		reply.Body.Close()
		cancel()
	}
}

func TestNoMoreStreamsAreOpenThanMayBe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the loopback interface has one address")
	}
	s := start(t, nil)
	s.take(t, 1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		s.from = from
		for range 32 {
			reply, next := s.stream(ctx, t, false)
			defer reply.Body.Close()
			if reply.StatusCode != http.StatusOK || next() == nil {
				t.Fatal(reply.Status)
			}
		}
		reply, _ := s.stream(ctx, t, false)
		reply.Body.Close()
		if reply.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the 33rd of %s: %s, want 503", from, reply.Status)
		}
	}
	s.from = "127.0.0.3"
	reply, _ := s.stream(ctx, t, false)
	reply.Body.Close()
	if reply.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the 65th: %s, want 503", reply.Status)
	}
	if polled, _ := s.get(t, "/api/snapshot"); polled.StatusCode != http.StatusOK {
		t.Errorf("a poll beside them: %s", polled.Status)
	}
}

// No client reads these streams, and the buffers of the kernel hold all that was sent.
func TestStreamsThatAreNotReadGiveTheirPlacesUp(t *testing.T) {
	s := start(t, nil)
	console.ShortenStreams(s.console, 500*time.Millisecond)
	s.take(t, 1, 1)
	for range 64 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /api/stream?topics=events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	harness.Until(t, "a place for a stream that is read", func() bool {
		reply, next := s.stream(ctx, t, false)
		defer reply.Body.Close()
		return reply.StatusCode == http.StatusOK && next() != nil
	})
}

func TestLookUpsTakeNothing(t *testing.T) {
	s := start(t, nil)
	s.take(t, 42, 9)
	for range 3 {
		_, body := s.get(t, "/api/uid?uid=42")
		var got struct {
			UID, Owner, Space string
			Current           uint64
			Exact             bool
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Current != 9 || !got.Exact || got.Owner != "alloc-1" || got.UID != "42" || got.Space != "user" {
			t.Errorf("got %s (%v)", body, err)
		}
	}
	_, body := s.get(t, "/api/uid?uid=18446744073709551615")
	if !strings.Contains(body, `"uid":"18446744073709551615"`) {
		t.Errorf("the largest UID: %s", body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.sdk.Take(ctx, client.StringKey("", "room:7"), 3); err != nil {
		t.Fatal(err)
	}
	_, body = s.get(t, "/api/uid?key=room:7")
	mapping, _ := s.sdk.Caller().Table().Mapping()
	users, err := mapping.Space("")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any // under a secret, so its number differs from the public hash, which places it
	if err := json.Unmarshal([]byte(body), &got); err != nil || got["key"] != "room:7" || got["current"] != 3.0 || got["section"] != float64(users.SectionOf(seq.HashKey("room:7"))) {
		t.Errorf("a key: %s (%v)", body, err)
	}
	if _, shown := got["uid"]; shown {
		t.Errorf("the UID of a key is shown: %s", body)
	}
	_, body = s.get(t, "/api/id?id=108152875544481803&layout=regional")
	if !strings.Contains(body, `"id":"108152875544481803"`) || !strings.Contains(body, `"sequence":"11"`) {
		t.Errorf("an ID: %s", body)
	}
	for _, path := range []string{"/api/uid", "/api/uid?uid=-1", "/api/uid?uid=1&space=none", "/api/id?id=x", "/api/id?id=5&namespace=none", "/api/snapshot?topics=all"} {
		var why struct{ Error string }
		reply, body := s.get(t, path)
		if err := json.Unmarshal([]byte(body), &why); err != nil || reply.StatusCode != http.StatusBadRequest || why.Error == "" {
			t.Errorf("%s: %s %s", path, reply.Status, body)
		}
	}
}

func TestPagesTellWhatIsKeptForReaders(t *testing.T) {
	s := start(t, nil, seq.Space{Name: "inbox", Sections: 2, Step: 100, Tickets: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := client.Key{Space: "inbox", UID: 42}
	first, err := s.sdk.Open(ctx, key, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.sdk.Open(ctx, key, 1, client.WithLife(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	w, err := s.sdk.Watch(ctx, key, client.Key{UID: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	type readers struct {
		HasTickets  bool `json:"has_tickets"`
		Mark, Fence uint64
		KnownInMS   uint32 `json:"known_in_ms"`
		Tickets     uint32 `json:"tickets_open"`
		EndsInMS    uint32 `json:"ends_in_ms"`
		Watches     uint32
	}
	look := func(query string) (got readers) {
		_, body := s.get(t, "/api/uid?"+query)
		var found struct {
			Readers      readers
			ReadersError string `json:"readers_error"`
		}
		if err := json.Unmarshal([]byte(body), &found); err != nil || found.ReadersError != "" {
			t.Fatalf("%s: %v", body, err)
		}
		return found.Readers
	}
	var got readers
	harness.Until(t, "the watch is there", func() bool {
		got = look("uid=42&space=inbox")
		return got.Watches == 1
	})
	if got.EndsInMS <= 30_000 || got.EndsInMS > 62_000 || got.KnownInMS > 62_000 { // the owner is new
		t.Errorf("got %+v", got)
	}
	got.EndsInMS, got.KnownInMS = 0, 0
	if want := (readers{HasTickets: true, Tickets: 2, Watches: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := first.Done(ctx); err != nil {
		t.Fatal(err)
	}
	if got = look("uid=42&space=inbox"); got.Tickets != 1 || got.EndsInMS > 31_000 {
		t.Errorf("one has ended: got %+v", got)
	}
	if got = look("uid=7"); got != (readers{Mark: got.Mark, Watches: 1}) {
		t.Errorf("a space without tickets: got %+v", got)
	}
	if got = look("key=room:7&space=inbox"); got.Tickets != 0 || got.Watches != 0 || !got.HasTickets {
		t.Errorf("a key: got %+v", got)
	}
	harness.Until(t, "a snapshot tells of tickets and watches by space and node", func() bool {
		var status struct {
			Status struct {
				Reading []struct {
					Space   string
					Tickets uint64 `json:"tickets_open"`
					Oldest  uint64 `json:"oldest_ticket_ms"`
					Keys    uint64 `json:"watched_keys"`
				}
				Allocs []struct {
					Tickets uint64 `json:"tickets_open"`
					Watches uint64
					Keys    uint64 `json:"watched_keys"`
				}
			}
		}
		s.part(t, "status", &status)
		read, allocs := status.Status.Reading, status.Status.Allocs
		return len(read) == 2 && len(allocs) == 1 && read[0].Space == "inbox" && read[0].Tickets == 1 && read[0].Oldest > 0 && read[0].Keys == 1 &&
			read[1].Space == "user" && read[1].Tickets == 0 && read[1].Keys == 1 && allocs[0].Tickets == 1 && allocs[0].Watches == 1 && allocs[0].Keys == 2
	})
}

func TestAClusterThatIsNotThereIsSaidToBe(t *testing.T) {
	sdk, err := client.New(t.Context(), client.Config{Addrs: []string{"127.0.0.1:1"}, Lazy: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	c := console.New(console.Config{Server: "router-1", Client: sdk})
	defer c.Close()
	s := &site{Server: httptest.NewServer(c)}
	defer s.Close()
	var status struct{ Error string }
	if err := json.Unmarshal(s.look(t, "status"), &status); err != nil || !strings.Contains(status.Error, "no route table") {
		t.Errorf("got %q", status.Error)
	}
}

func TestADrillIsShownWhereThereIsOne(t *testing.T) {
	s := start(t, func(c *console.Config) {
		c.Drill = func() *console.Drill {
			return &console.Drill{Name: "kill-alloc", Verdict: &console.Verdict{Kept: true, Words: "well"}}
		}
	})
	var got console.Drill
	if s.part(t, "drill", &got); got.Name != "kill-alloc" || got.Verdict == nil || got.Verdict.Words != "well" {
		t.Errorf("got %+v", got)
	}
	if _, page := s.get(t, "/"); !strings.Contains(page, `id="view-drill"`) || !strings.Contains(page, `href="#drill"`) {
		t.Error("the page has no drill")
	}
	if _, page := start(t, nil).get(t, "/"); strings.Contains(page, `id="view-drill"`) || strings.Contains(page, `href="#drill"`) {
		t.Error("a page without a drill has one")
	}
}
