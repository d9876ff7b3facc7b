package metrics

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient bounds the wait of a test for a condition on a busy machine.
const patient = 60 * time.Second

// one is a daemon in this process with its admin listener.
type one struct {
	daemon.Service
	kind  string
	admin *httptest.Server
	halt  func() // stops it in order
}

// cluster is three stores, an allocator and a router in this process.
type cluster struct {
	stores []*one
	alloc  *one
	router *one
	addr   string // of the router, gRPC
	http   string // of the router, HTTP
	resp   string // of the router, for clients of Redis
}

func start(t *testing.T) *cluster {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	names := []string{"store-1", "store-2", "store-3"}
	c := &cluster{}
	var addrs, gossip []string
	for _, name := range names {
		cfg := harness.StoreConfig(t, name, names, seq.Space{Sections: 16, Step: 100})
		cfg.GossipListen, cfg.GossipJoin = "127.0.0.1:0", gossip
		s, err := storesvr.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		addrs, gossip = append(addrs, s.Addr()), append(gossip, s.GossipAddr())
		c.stores = append(c.stores, run(t, "storesvr", s))
	}
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Logger, cfg.GossipListen, cfg.GossipJoin = "alloc-1", "127.0.0.1:0", addrs, log, "127.0.0.1:0", gossip
	cfg.IDAudit.Path = filepath.Join(t.TempDir(), "ids") // shows its metric
	a, err := allocsvr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.alloc = run(t, "allocsvr", a)
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", RESPListen: "127.0.0.1:0", Allocs: []string{a.Addr()}, Logger: log,
		AttemptTimeout: patient, Timeout: 2 * patient, // what is tried twice is counted twice
		GossipListen: "127.0.0.1:0", GossipJoin: gossip})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	c.router, c.addr, c.http = run(t, "router", r), r.Addr(), "http://"+r.HTTPAddr()
	c.resp = r.RESPAddr()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return c
}

// run starts a daemon; at the end of the test it is stopped in order.
func run(t *testing.T, kind string, s daemon.Service) *one {
	o := &one{Service: s, kind: kind, admin: httptest.NewServer(telemetry.Admin{Daemon: kind, Subject: s, Logger: slog.New(slog.DiscardHandler)}.Handler())}
	t.Cleanup(o.admin.Close)
	o.halt = harness.Inside(t, kind, s.Run)
	return o
}

// all are the daemons in the order in which they may be stopped.
func (c *cluster) all() []*one { return append([]*one{c.router, c.alloc}, c.stores...) }

// ready waits until /readyz of the daemon says yes or no, and gives its text.
func (o *one) ready(t *testing.T, want bool) string {
	t.Helper()
	deadline := time.Now().Add(patient)
	for {
		code, text := get(t, o.admin.URL+"/readyz")
		if (code == http.StatusOK) == want {
			return text
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: /readyz is %d %q, want ready to be %v", o.kind, code, text, want)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	reply, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(text)
}

// secretUID stands for a caller's data: it must not be among the metrics.
const secretUID = 918273645546372819

// traffic makes every kind of call once, so that what is counted by method has a value.
func (c *cluster) traffic(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	conn, err := rpc.Dial(c.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err = pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: secretUID}, Count: 250})
	check("next", err)
	_, err = pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Key{Key: "room:secret"}, Count: 1})
	check("next by key", err)
	if _, err = pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Space: "nowhere", Count: 1}); err == nil {
		t.Error("next of an unknown space: no error")
	}
	segments := pb.NewSegmentClient(conn)
	alloc, err := rpc.Dial(c.alloc.Service.(*allocsvr.Server).Addr())
	check("dial", err)
	defer alloc.Close()
	_, err = pb.NewSegmentClient(alloc).Put(ctx, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: "secret-tag"}})
	check("put a tag", err)
	_, err = segments.Take(ctx, &pb.SegmentTakeRequest{Tag: "secret-tag", Count: 3}, grpc.WaitForReady(true))
	check("take of a tag", err)
	_, err = pb.NewSnowflakeClient(conn).Generate(ctx, &pb.SnowflakeGenerateRequest{Count: 10, Agent: "mailer"})
	check("generate", err)
	reply, err := http.Post(c.http+"/v1/next", "application/json", strings.NewReader(fmt.Sprintf(`{"uid":"%d"}`, uint64(secretUID))))
	check("HTTP next", err)
	_ = reply.Body.Close()
	check("RESP", redis(ctx, c.resp, "INCR seq:7\r\nFLUSHALL secret\r\n", 2))
	if code, _ := get(t, c.http+"/secret-path"); code != http.StatusNotFound {
		t.Errorf("an unknown path: got %d", code)
	}
}

// redis sends inline commands and reads so many lines of replies.
func redis(ctx context.Context, addr, commands string, lines int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient))
	if _, err := io.WriteString(conn, commands); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for range lines {
		if _, err := in.ReadString('\n'); err != nil {
			return err
		}
	}
	return nil
}
