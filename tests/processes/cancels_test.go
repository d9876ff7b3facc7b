package processes

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/rawcall"
)

// withAdmin has the admin listener of that role at a port of the kernel's.
func withAdmin(cfg *localcluster.Config, role localcluster.Role) {
	cfg.Args = map[localcluster.Role][]string{role: {"--admin", "127.0.0.1:0"}}
}

// metricsOf is what a process that was started withAdmin shows.
func metricsOf(t *testing.T, p *localcluster.Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	listens := regexp.MustCompile(`msg="admin listens" addr=(\S+)`).FindSubmatch(text)
	if listens == nil {
		t.Fatalf("%s has no admin listener", p.Name)
	}
	reply, err := http.Get("http://" + string(listens[1]) + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	metrics, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(metrics)
}

// histogram counts the calls that a server answered within each of its bounds, in seconds.
type histogram map[float64]float64

// histogramOf reads one metric with these labels.
func histogramOf(t *testing.T, metrics, name, labels string) histogram {
	t.Helper()
	h := histogram{}
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+"_bucket{"+labels+`,le="`)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		at, err1 := strconv.ParseFloat(bound, 64)
		n, err2 := strconv.ParseFloat(count, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("malformed: %q", line)
		}
		h[at] = n
	}
	return h
}

// since is what came after before.
func (h histogram) since(before histogram) histogram {
	out := histogram{}
	for at, n := range h {
		out[at] = n - before[at]
	}
	return out
}

// within is the least bound that so many of the calls kept, in seconds.
func (h histogram) within(share float64) float64 {
	bounds := make([]float64, 0, len(h))
	for at := range h {
		bounds = append(bounds, at)
	}
	slices.Sort(bounds)
	for _, at := range bounds {
		if all := h[bounds[len(bounds)-1]]; all > 0 && h[at] >= share*all {
			return at
		}
	}
	return 0
}

// politely makes 100 calls a second until stop, and counts those that failed.
func politely(t *testing.T, conn *grpc.ClientConn) (failed *atomic.Int64, stop func()) {
	client, failed := pb.NewSequenceClient(conn), new(atomic.Int64)
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	calls.Go(func() {
		each := time.NewTicker(10 * time.Millisecond)
		defer each.Stop()
		for uid := uint64(1); ; uid++ {
			select {
			case <-ctx.Done():
				return
			case <-each.C:
			}
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				if _, err := client.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uid % 1000}}); err != nil {
					failed.Add(1)
				}
			})
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); calls.Wait() }) }
	t.Cleanup(stop)
	return failed, stop
}

// loggedBy counts a text in the logs of all daemons.
func loggedBy(t *testing.T, c *localcluster.Cluster, what string) (n int) {
	t.Helper()
	for _, p := range c.Processes() {
		text, err := os.ReadFile(p.Log)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), what)
	}
	return n
}

// resetting opens calls and cancels them as fast as the server lets it, on one connection after the
// other until the time is over, and gives how many of these the server closed.
func resetting(addr string, until time.Time) (closed int) {
	request, err := proto.Marshal(&pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: []uint64{1}}}})
	if err != nil {
		panic(err) // it is fixed
	}
	for time.Now().Before(until) {
		c, err := rawcall.Dial(addr)
		if err != nil {
			continue
		}
		over := time.AfterFunc(time.Until(until), func() { _ = c.Close() })
		for err == nil {
			for range 20 {
				one := c.Open(pb.Sequence_BatchNext_FullMethodName)
				c.Send(one, request)
				c.Reset(one)
			}
			err = c.Flush()
		}
		if over.Stop() {
			closed++
			_ = c.Close()
		}
	}
	return closed
}

// The attack is CVE-2023-44487: calls that are cancelled as soon as they are made.
func TestConnectionsThatResetTheirCallsAreClosedAndHarmNobody(t *testing.T) {
	const (
		conns  = 4
		during = 3 * time.Second
	)
	c := start(t, func(cfg *localcluster.Config) { withAdmin(cfg, localcluster.RoleRouter) })
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, c.GRPC())
	polite := func() histogram {
		return histogramOf(t, metricsOf(t, router), "seq_grpc_server_call_seconds", `method="`+pb.Sequence_Next_FullMethodName+`"`)
	}
	failed, stop := politely(t, dialed(t, c.GRPC()))
	first := polite()
	harness.Until(t, "the polite caller is served alone", func() bool { return polite().since(first)[10] >= 100 })
	alone := polite()

	before, until := loggedBy(t, c, "leases lost"), time.Now().Add(during)
	var closed atomic.Int64
	var attack sync.WaitGroup
	for range conns {
		attack.Go(func() { closed.Add(int64(resetting(c.GRPC(), until))) })
	}
	admin := pb.NewAdminClient(dialed(t, c.Addrs(localcluster.RoleAlloc)[0]))
	quickest := time.Hour
	for time.Now().Before(until) {
		begun := time.Now()
		if _, err := admin.Status(harness.Within(t), &pb.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
		quickest = min(quickest, time.Since(begun))
	}
	attack.Wait()
	beside := polite().since(alone)
	stop()
	quiet := alone.since(first)
	t.Logf("%d connections closed; the router answers half of the polite caller's calls in %v s alone and in %v beside them, 9 of 10 in %v and %v; status in %v",
		closed.Load(), quiet.within(.5), beside.within(.5), quiet.within(.9), beside.within(.9), quickest)
	if n := closed.Load(); n < conns {
		t.Errorf("%d connections were closed, want %d at least", n, conns)
	}
	if n := failed.Load(); n > 0 {
		t.Errorf("%d calls of the polite caller failed", n)
	}
	if got, most := beside.within(.5), max(10*quiet.within(.5), .05); got > most {
		t.Errorf("half of the polite caller's calls took up to %v s, want at most %v", got, most)
	}
	if quickest > time.Second {
		t.Errorf("the status took %v", quickest)
	}
	if got := loggedBy(t, c, "leases lost"); got != before {
		t.Errorf("leases were lost %d times", got-before)
	}
	allAlive(t, c)
}

// allAlive waits until all nodes are taken for alive.
func allAlive(t *testing.T, c *localcluster.Cluster) {
	t.Helper()
	admin := pb.NewAdminClient(dialed(t, c.Addrs(localcluster.RoleAlloc)[0]))
	harness.Until(t, "all nodes are taken for alive", func() bool {
		status, err := admin.Status(harness.Within(t), &pb.StatusRequest{})
		return err == nil && len(status.GetMembers()) == len(c.Nodes) && !slices.ContainsFunc(status.GetMembers(), func(m *pb.MemberStatus) bool { return m.GetState() != "alive" })
	})
}

// Each call costs a goroutine before its message has come, and a peer may have many connections.
func TestCallsWhoseMessagesNeverComeTakeNoPlacesOfOthers(t *testing.T) {
	needsProc(t)
	c := start(t, func(cfg *localcluster.Config) { withAdmin(cfg, localcluster.RoleRouter) })
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, c.GRPC())
	for range 16 {
		conn, err := rawcall.Dial(c.GRPC())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 2300 {
			conn.Open(pb.Sequence_BatchNext_FullMethodName)
		}
		if err := conn.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	harness.Until(t, "the router refuses more open calls", func() bool {
		return strings.Contains(metricsOf(t, router), `seq_refused_total{address="127.0.0.1",reason="overloaded"}`)
	})
	served(t, c.GRPC())
	t.Logf("the router took %d MiB", resident(t, router.Pid())/mib)
	harness.Until(t, "seqctl status names what the router refuses", func() bool {
		status := run(t, "seqctl", "status", "--addr", c.GRPC())
		return status.Code == 0 && strings.Contains(status.Stdout, "router "+router.Name+" refused ") && strings.Contains(status.Stdout, ": overloaded, from 127.0.0.1")
	})
}
