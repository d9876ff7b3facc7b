package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const (
	// idRounds is the number of kills and restarts of the drill. The environment may ask for more.
	idRounds    = 3
	idRoundsEnv = "SEQ_ID_DRILL_ROUNDS"
	// drilled has sixteen worker ids, of which four allocators take one each and a caller
	// with a fallback another one at a time; crowded has fewer than there are allocators.
	drilled = "drilled"
	crowded = "crowded"
)

// idLedger collects all IDs of a drill, by namespace and by who got them.
type idLedger struct {
	mu  sync.Mutex // guards all below
	ids map[string][]int64
	by  map[string]int
}

func (l *idLedger) add(namespace, source string, ids ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[namespace] = append(l.ids[namespace], ids...)
	l.by[source] += len(ids)
}

func (l *idLedger) got(source string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[source]
}

// check sorts: an ID that was handed out twice stands beside itself.
func (l *idLedger) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for namespace, ids := range l.ids {
		slices.Sort(ids)
		for i := 1; i < len(ids); i++ {
			if ids[i] == ids[i-1] {
				t.Errorf("namespace %s: id %d was handed out twice", namespace, ids[i])
			}
		}
		t.Logf("namespace %s: %d ids, all different", namespace, len(ids))
	}
	t.Logf("by source: %v", l.by)
}

// callers ask for IDs in three ways until the test ends them. Errors are what a drill is
// made of, so they are passed over; whoever gets one tries again a moment later.
func callers(t *testing.T, c *localcluster.Cluster, sdk *client.Client, book *idLedger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	loop := func(ask func(context.Context) error) {
		all.Go(func() {
			for ctx.Err() == nil {
				if ask(ctx) != nil {
					rest(ctx)
				}
			}
		})
	}
	loop(func(ctx context.Context) error {
		got, err := sdk.Generate(ctx, drilled, 20)
		if err != nil {
			return err
		}
		source := "sdk"
		if got.Fallback {
			source = "fallback"
		}
		for id := range got.All() {
			book.add(drilled, source, int64(id))
		}
		rest(ctx)
		return nil
	})
	loop(func(ctx context.Context) error { return locally(ctx, sdk, book) })
	conn, err := rpc.Dial(c.GRPC())
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{drilled, crowded} {
		loop(func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			reply, err := pb.NewSnowflakeClient(conn).Generate(ctx, &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: 100})
			for _, id := range reply.GetIds() {
				book.add(namespace, "grpc", int64(id))
			}
			return err
		})
		loop(func(ctx context.Context) error { return askHTTP(ctx, c.HTTP(), namespace, book) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		_ = conn.Close()
	})
	t.Cleanup(stop)
	return stop
}

// locally is the life of a process that makes IDs itself and gives its worker id back, as it is
// started and ended at each deployment.
func locally(ctx context.Context, sdk *client.Client, book *idLedger) error {
	l, err := sdk.NewLocal(client.LocalConfig{Namespace: drilled, Window: 20 * time.Second})
	if err != nil {
		return err
	}
	defer l.Close()
	for range 200 {
		got, err := l.Take(ctx, 20)
		if err != nil {
			return err
		}
		source := "service for local"
		if got.Fallback {
			source = "local"
		}
		for id := range got.All() {
			book.add(drilled, source, int64(id))
		}
		rest(ctx)
	}
	return nil
}

func rest(ctx context.Context) {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func askHTTP(ctx context.Context, addr, namespace string, book *idLedger) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	body := fmt.Sprintf(`{"namespace":%q,"count":10}`, namespace)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/snowflake/generate", bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var got struct {
		IDs []string `json:"ids"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return err
	}
	for _, text := range got.IDs {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		book.add(namespace, "http", id)
	}
	if len(got.IDs) == 0 {
		return errors.New("no ids")
	}
	return nil
}

// putNamespaces records the drill's, by the router.
func putNamespaces(t *testing.T, c *localcluster.Cluster) {
	t.Helper()
	conn, err := rpc.Dial(c.GRPC())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, layout := range map[string]string{
		drilled: "time:41,worker:4,sequence:12;epoch=1700000000000;overflow=borrow;rollback=borrow",
		crowded: "time:41,worker:1,sequence:12;epoch=1700000000000",
	} {
		harness.Until(t, "namespace "+name+" recorded", func() bool {
			_, err := pb.NewSnowflakeClient(conn).PutNamespace(harness.Within(t), &pb.SnowflakePutNamespaceRequest{Name: name, Layout: layout})
			return err == nil || errors.Is(err, seq.ErrConflict) // done by an attempt whose answer was lost
		})
	}
}

// exhausted says whether an allocator says that all worker ids of crowded are held.
func exhausted(t *testing.T, c *localcluster.Cluster) bool {
	t.Helper()
	found := false
	for _, addr := range c.Addrs(localcluster.RoleAlloc) {
		conn, err := rpc.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(harness.Within(t), 2*time.Second)
		_, err = pb.NewSnowflakeClient(conn).Info(ctx, &pb.SnowflakeInfoRequest{Namespace: crowded})
		cancel()
		_ = conn.Close()
		found = found || errors.Is(err, seq.ErrWorkersExhausted)
	}
	return found
}

// routerHasWindow says whether the router has a worker id to make IDs with by itself. It asks for
// one from its start, and ever less often until the namespace is there.
func routerHasWindow(t *testing.T, c *localcluster.Cluster) bool {
	t.Helper()
	text, err := os.ReadFile(c.Processes(localcluster.RoleRouter)[0].Log)
	if err != nil {
		t.Fatal(err)
	}
	listens := regexp.MustCompile(`msg="admin listens" addr=(\S+)`).FindSubmatch(text)
	if listens == nil {
		return false
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
	return regexp.MustCompile(`(?m)^seq_router_fallback_window_remaining_seconds [1-9]`).Match(metrics)
}

func drillRounds(t *testing.T) int {
	text, ok := os.LookupEnv(idRoundsEnv)
	if !ok {
		return idRounds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: expected a number of rounds", idRoundsEnv, text)
	}
	return n
}

func TestNoSnowflakeIDTwiceOverKilledProcessesAnExhaustedPoolAndCallersOnTheirOwn(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) {
		cfg.Allocs, cfg.Lease = 4, time.Second
		cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--ids-fallback", drilled, "--ids-fallback-after", "200ms", "--ids-fallback-window", "5m", "--admin", "127.0.0.1:0"}}
	})
	harness.Ready(t, c)
	putNamespaces(t, c)
	sdk, err := client.New(harness.Within(t), client.Config{
		Addrs:    c.Addrs(localcluster.RoleAlloc),
		Fallback: &client.Fallback{Namespace: drilled, After: 200 * time.Millisecond, Window: 5 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	harness.Until(t, "a worker id to fall back on", func() bool { return sdk.Stats().Fallback.Windows > 0 })
	harness.Until(t, "one of the router", func() bool { return routerHasWindow(t, c) })
	book := &idLedger{ids: map[string][]int64{}, by: map[string]int{}}
	stop := callers(t, c, sdk, book)
	harness.Until(t, "IDs of a local generator", func() bool { return book.got("local") > 0 })
	more := func(source string) {
		t.Helper()
		had := book.got(source)
		harness.Until(t, "more ids by "+source, func() bool { return book.got(source) > had })
	}
	allocs := c.Processes(localcluster.RoleAlloc)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := range drillRounds(t) {
		more("grpc")
		more("http")
		gone := allocs // all of them in every third round: only the fallback is left then
		if round%3 != 1 {
			k := rnd.IntN(len(allocs))
			gone = allocs[k : k+1]
		}
		for _, p := range gone {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if len(gone) == len(allocs) {
			more("fallback")
			harness.Until(t, "IDs of the router itself", func() bool {
				return askHTTP(harness.Within(t), c.HTTP(), drilled, book) == nil
			})
		}
		for _, p := range gone {
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
		harness.Ready(t, c)
		more("sdk")
		more("local") // one that is started meanwhile has no window: no node is there to lend it one
	}
	harness.Until(t, "the pool of "+crowded+" exhausted", func() bool { return exhausted(t, c) })
	stop()
	book.check(t)
}
