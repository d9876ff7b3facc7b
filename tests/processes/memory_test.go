package processes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const mib = 1 << 20

// resident is the most memory that a process ever had, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

func needsProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc, which is there on Linux alone")
	}
}

// stuck is a connection that reads and writes so many bytes, and no more.
type stuck struct {
	net.Conn
	reads, writes atomic.Int64 // left
	ended         chan struct{}
	once          sync.Once
}

func (s *stuck) Read(b []byte) (int, error) {
	left := s.reads.Load()
	if left <= 0 {
		<-s.ended
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Read(b[:min(int64(len(b)), left)])
	s.reads.Add(-int64(n))
	return n, err
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.writes.Add(-int64(len(b))) < 0 {
		<-s.ended
		return 0, net.ErrClosed
	}
	return s.Conn.Write(b)
}

func (s *stuck) Close() error {
	s.once.Do(func() { close(s.ended) })
	return s.Conn.Close()
}

// stuckAfter dials with connections that are stuck after so many bytes.
func stuckAfter(t *testing.T, addr string, reads, writes int64) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(addr, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", to)
		if err != nil {
			return nil, err
		}
		s := &stuck{Conn: c, ended: make(chan struct{})}
		s.reads.Store(reads)
		s.writes.Store(writes)
		return s, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// served takes a number through the router.
func served(t *testing.T, addr string) {
	t.Helper()
	client := pb.NewSequenceClient(dialed(t, addr))
	harness.Until(t, "the router serves others", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := client.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}, Count: 1})
		return err == nil
	})
}

func TestARoutersMemoryIsBoundedWhateverCallersDoNotRead(t *testing.T) {
	needsProc(t)
	c := start(t, nil)
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, router.Addr)
	uids := make([]uint64, 500)
	for i := range uids {
		uids[i] = uint64(i) * 64
	}
	batch := &pb.BatchNextRequest{Batches: []*pb.Batch{{Uids: uids}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var asked atomic.Int64
	for range 100 {
		client := pb.NewSequenceClient(stuckAfter(t, router.Addr, 4<<10, 1<<40))
		all.Go(func() {
			stream, err := client.Stream(ctx)
			for range 200 {
				if err != nil {
					break
				}
				asked.Add(1)
				err = stream.Send(&pb.StreamRequest{Id: 1, Call: &pb.StreamRequest_Next{Next: batch}})
			}
		})
		for range 4 {
			all.Go(func() {
				for range 5 {
					asked.Add(1)
					one, done := context.WithTimeout(ctx, time.Second)
					_, _ = client.BatchNext(one, batch)
					done()
				}
			})
		}
	}
	all.Wait()
	served(t, router.Addr)
	got := resident(t, router.Pid())
	t.Logf("%d requests, %d MiB", asked.Load(), got/mib)
	if got > 150*mib {
		t.Errorf("the router had %d MiB, want at most 150", got/mib)
	}
}

func TestAStoresMemoryIsBoundedWhateverMessagesAreNotFinished(t *testing.T) {
	needsProc(t)
	c := start(t, nil)
	store := c.Processes(localcluster.RoleStore)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := pb.NewStoreClient(stuckAfter(t, store.Addr, 1<<40, 400*mib))
	name := strings.Repeat("n", 15*mib)
	var all sync.WaitGroup
	for range 80 {
		all.Go(func() {
			// A few messages may come whole before the connection is closed.
			_, _ = client.Renew(ctx, &pb.RenewRequest{Name: name})
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Error("the connection is open after a minute")
	}
	got := resident(t, store.Pid())
	if got > 100*mib {
		t.Errorf("the store had %d MiB, want at most 100", got/mib)
	}
	t.Logf("store: %d MiB", got/mib)
	newVictim(t, c).take(t, 10)
}

// slowBody gives most of its bytes at once, and then none.
type slowBody struct {
	ctx  context.Context
	left int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		<-b.ctx.Done()
		return 0, io.EOF
	}
	n := min(len(p), b.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	b.left -= n
	return n, nil
}

func TestBodiesThatDoNotEndTakeNoMoreThanTheirShare(t *testing.T) {
	needsProc(t)
	c := start(t, nil)
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, router.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+router.HTTP+"/v1/batch", &slowBody{ctx, 15 * mib})
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if reply, err := http.DefaultClient.Do(req); err == nil {
				defer reply.Body.Close()
				if reply.StatusCode == http.StatusOK {
					t.Error("an unfinished body was answered with 200")
				}
			}
		})
	}
	served(t, router.Addr) // meanwhile
	all.Wait()             // the router ends them, and not this test
	if ctx.Err() != nil {
		t.Error("bodies are waited for after a minute")
	}
	if got := resident(t, router.Pid()); got > 250*mib {
		t.Errorf("the router had %d MiB, want at most 250", got/mib)
	}
}
