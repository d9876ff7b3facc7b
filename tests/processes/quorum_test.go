package processes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// forever is a deadline that no call reaches: one that ends did not wait for it.
const forever = "10m"

// dialed is a connection until the test ends.
func dialed(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// fronts asks for a number, a tag's number or an ID by every way in. Each gives the text
// of the answer, and an error if it was none.
func fronts(t *testing.T, c *localcluster.Cluster) map[string]func() error {
	t.Helper()
	one := &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1}
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, Timeout: 2 * harness.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	indirect, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, Timeout: 2 * harness.Patience, Indirect: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = indirect.Close() })
	next := func(conn *grpc.ClientConn) func() error {
		return func() error {
			_, err := pb.NewSequenceClient(conn).Next(harness.Within(t), one)
			return err
		}
	}
	post := func(path, body string) func() error {
		return func() error { return ask(t, "http://"+c.HTTP()+path, body) }
	}
	out := map[string]func() error{
		"gRPC, router":      next(dialed(t, c.GRPC())),
		"HTTP, sequence":    post("/v1/next", `{"uid":42}`),
		"HTTP, snowflake":   post("/v1/snowflake/generate", `{"count":3}`),
		"HTTP, segment":     post("/v1/segment/take", `{"tag":"orders"}`),
		"RESP, take":        func() error { return command1(t, c.Role(localcluster.RoleRouter)[0].RESP, "INCR seq:42") },
		"RESP, read":        func() error { return command1(t, c.Role(localcluster.RoleRouter)[0].RESP, "GET seq:42") },
		"SDK":               func() error { _, err := sdk.Next(harness.Within(t), client.Key{UID: 42}); return err },
		"SDK, routers only": func() error { _, err := indirect.Next(harness.Within(t), client.Key{UID: 42}); return err },
		"SDK, ids":          func() error { _, err := sdk.Generate(harness.Within(t), "", 5); return err },
		"seqctl next":       func() error { return seqctl(t, "next", "42", "--timeout", forever, "--addr", c.GRPC()) },
		"seqctl gen":        func() error { return seqctl(t, "snowflake", "gen", "--timeout", forever, "--addr", c.GRPC()) },
	}
	return out
}

// ask posts JSON; another status than 200 is an error with the body.
func ask(t *testing.T, url, body string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(harness.Within(t), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %d: %s", reply.StatusCode, text)
	}
	return err
}

// command1 sends one command to a RESP address and reads the first line of its reply.
func command1(t *testing.T, addr, line string) error {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(harness.Within(t), "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
		return err
	}
	reply, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.HasPrefix(reply, "-") {
		err = errors.New(reply)
	}
	return err
}

func seqctl(t *testing.T, args ...string) error {
	t.Helper()
	if ended := run(t, "seqctl", args...); ended.Code != 0 {
		return errors.New(ended.Stderr)
	}
	return nil
}

// wantMissing checks an error: no quorum, and which stores are missing. It came before
// any deadline, since those are longer than the test.
func wantMissing(t *testing.T, front string, err error, stores ...*localcluster.Process) {
	t.Helper()
	text := fmt.Sprint(err)
	if !errors.Is(err, seq.ErrNoQuorum) && !strings.Contains(text, "NO_QUORUM") && !strings.Contains(text, seq.ErrNoQuorum.Error()) {
		t.Errorf("%s: got %v, want NO_QUORUM", front, err)
	}
	for _, s := range stores {
		if !strings.Contains(text, s.Addr) {
			t.Errorf("%s: got %v, want it to name %s", front, err, s.Addr)
		}
	}
}

// untilQuorum waits until all allocators say of themselves that they have a quorum, or
// that they have none.
func untilQuorum(t *testing.T, c *localcluster.Cluster, want healthpb.HealthCheckResponse_ServingStatus) {
	t.Helper()
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		h := healthpb.NewHealthClient(dialed(t, addr))
		harness.Until(t, addr+" to say "+want.String(), func() bool {
			reply, err := h.Check(harness.Within(t), &healthpb.HealthCheckRequest{Service: rpc.QuorumHealth})
			return err == nil && reply.GetStatus() == want
		})
	}
}

func TestEveryFrontNamesTheMissingStoresWhenTheQuorumIsLostAndServesWhenItIsBack(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.RESP = sections, "127.0.0.1:0"
		cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--timeout", forever}}
	})
	if err := seqctl(t, "segment", "add", "orders", "--addr", c.GRPC()); err != nil {
		t.Fatal(err)
	}
	ways := fronts(t, c)
	for name, ask := range ways {
		if err := ask(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	stores := c.Processes(localcluster.RoleStore)
	for _, s := range stores[1:] {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	untilQuorum(t, c, healthpb.HealthCheckResponse_NOT_SERVING)
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		_, err := pb.NewSequenceClient(dialed(t, addr)).Next(harness.Within(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1})
		wantMissing(t, "gRPC at "+addr, err, stores[1:]...)
	}
	for name, ask := range ways {
		// IDs are handed out for as long as their window lasts.
		var err error
		begun := time.Now()
		harness.Until(t, name+" to fail", func() bool { begun, err = time.Now(), ask(); return err != nil })
		t.Logf("%s: refused after %v", name, time.Since(begun).Round(time.Millisecond))
		wantMissing(t, name, err, stores[1:]...)
	}
	for _, s := range stores[1:] {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	untilQuorum(t, c, healthpb.HealthCheckResponse_SERVING)
	for name, ask := range ways {
		begun := time.Now()
		harness.Until(t, name+" to serve again", func() bool { return ask() == nil })
		t.Logf("%s: serves again after %v", name, time.Since(begun).Round(time.Millisecond))
	}
}

func TestAnAllocatorAnswersBeforeItsFirstQuorumAndServesAfterIt(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) { cfg.Sections = sections })
	c.KillAll()
	stores, alloc := c.Processes(localcluster.RoleStore), c.Processes(localcluster.RoleAlloc)[0]
	for _, p := range []*localcluster.Process{stores[0], alloc} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := alloc.WaitListening(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	conn := dialed(t, alloc.Addr)
	ask := func(ctx context.Context) error {
		_, err := pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1})
		return err
	}
	var err error
	harness.Until(t, "the store that answers not to be missing", func() bool {
		err = ask(harness.Within(t))
		return !strings.Contains(fmt.Sprint(err), stores[0].Addr)
	})
	wantMissing(t, "an allocator before its first quorum", err, stores[1:]...)
	if _, err := pb.NewSequenceClient(conn).Routes(harness.Within(t), &pb.RoutesRequest{}); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("routes: got %v, want %v", err, seq.ErrNoQuorum)
	}
	for _, service := range []string{"", rpc.QuorumHealth} {
		reply, err := healthpb.NewHealthClient(conn).Check(harness.Within(t), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("health of %q: got %v, %v, want NOT_SERVING", service, reply, err)
		}
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	harness.Until(t, "the same connection to be served", func() bool {
		err := ask(harness.Within(t))
		return err == nil || errors.Is(err, seq.ErrNotOwner)
	})
}

// wire passes connections on to an address until it is cut.
type wire struct {
	lis  net.Listener
	mu   sync.Mutex // guards all below
	ends []io.Closer
	cut  bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{lis: lis}
	t.Cleanup(w.sever)
	go func() {
		for {
			near, err := lis.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil || !w.keep(near, far) {
				_ = near.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = near.Close(), far.Close()
				}()
			}
		}
	}()
	return w
}

func (w *wire) keep(ends ...io.Closer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, ends...)
	return !w.cut
}

// sever ends what is under way and lets nothing through any more.
func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, c := range append(w.ends, w.lis) {
		_ = c.Close()
	}
}

func TestAnAllocatorThatIsCutOffAloneIsTakenOverFromAndCallsWaitForThat(t *testing.T) {
	c := harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Allocs = sections, 2
		cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--timeout", forever}}
	})
	var wires []*wire
	var stores []string
	for _, addr := range c.Addrs(localcluster.RoleStore) {
		w := newWire(t, addr)
		wires, stores = append(wires, w), append(stores, w.lis.Addr().String())
	}
	spare, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := spare.Addr().String()
	_ = spare.Close()
	third := harness.Serve(t, "the third allocator", command(context.Background(), t, "allocsvr", "--name", "alloc-far", "--listen", addr,
		"--admin", "", "--data-dir", t.TempDir(), "--stores", strings.Join(stores, ",")))
	defer third.Stop(t)
	section := fmt.Sprint(localSection(t, c, 42))
	harness.Until(t, "the section to be moved there", func() bool {
		return seqctl(t, "move", section, "alloc-far", "--addr", c.GRPC()) == nil
	})
	far := pb.NewSequenceClient(dialed(t, addr))
	one := &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1}
	harness.Until(t, "it to serve the section", func() bool {
		_, err := far.Next(harness.Within(t), one)
		return err == nil
	})
	for _, w := range wires {
		w.sever()
	}
	harness.Until(t, "it to have no quorum", func() bool {
		_, err := far.Next(harness.Within(t), one)
		return errors.Is(err, seq.ErrNoQuorum)
	})
	for name, ask := range map[string]func() error{
		"HTTP":        func() error { return ask(t, "http://"+c.HTTP()+"/v1/next", `{"uid":42}`) },
		"seqctl next": func() error { return seqctl(t, "next", "42", "--timeout", forever, "--addr", c.GRPC()) },
	} {
		if err := ask(); err != nil {
			t.Errorf("%s while one allocator is cut off: %v", name, err)
		}
	}
}

// localSection is the section of a UID in the default space.
func localSection(t *testing.T, c *localcluster.Cluster, uid seq.UID) seq.SectionID {
	t.Helper()
	reply, err := sequence(t, c.GRPC()).Routes(harness.Within(t), &pb.RoutesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := rpc.MappingFromProto(reply.GetMapping())
	if err != nil {
		t.Fatal(err)
	}
	space, err := m.Space("")
	if err != nil {
		t.Fatal(err)
	}
	return space.SectionOf(uid)
}
