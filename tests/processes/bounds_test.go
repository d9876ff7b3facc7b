package processes

import (
	"bytes"
	"compress/gzip"
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// mostResident is what a daemon of a cluster that has little to do may ever take, whatever
// callers without credentials send.
const mostResident = 150 * mib

// target is a daemon under attack.
type target struct {
	*localcluster.Process
	path  string           // of a method with a text as field 1
	batch string           // of a method with a list of messages
	field protowire.Number // of the list
}

func targets(c *localcluster.Cluster) map[string]target {
	return map[string]target{
		"store":  {c.Processes(localcluster.RoleStore)[0], pb.Store_Renew_FullMethodName, pb.Store_Step_FullMethodName, 3},
		"alloc":  {c.Processes(localcluster.RoleAlloc)[0], pb.Sequence_Next_FullMethodName, pb.Sequence_BatchNext_FullMethodName, 1},
		"router": {c.Processes(localcluster.RoleRouter)[0], pb.Sequence_Next_FullMethodName, pb.Sequence_BatchNext_FullMethodName, 1},
	}
}

// asOperator are the options of a connection by which seqctl status asks.
func asOperator(t *testing.T, c *localcluster.Cluster) []grpc.DialOption {
	t.Helper()
	if c.Secured == nil {
		return nil
	}
	token, err := rpc.TokenFile(c.Secured.Operator.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	secured, err := rpc.NewTLS(rpc.TLSFiles{CA: c.Secured.Operator.Files.CA}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(secured.DialOptions(), grpc.WithPerRPCCredentials(token))
}

// polite takes numbers of the SDK without a pause, while the cluster is attacked.
func polite(t *testing.T, c *localcluster.Cluster) *taker {
	t.Helper()
	cfg := client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), Timeout: attempt, AttemptTimeout: attempt / 4}
	if c.Secured != nil {
		cfg.TLS = &client.TLS{CAFile: c.Secured.Caller.Files.CA}
		cfg.TokenFile = c.Secured.Caller.TokenFile
	}
	return startTaker(t, 42, cfg)
}

// answers waits until an AllocSvr tells its status within a second on a new connection.
func answers(t *testing.T, c *localcluster.Cluster, addr string) {
	t.Helper()
	harness.Until(t, "the status of "+addr+" within a second", func() bool {
		conn, err := rpc.Dial(addr, asOperator(t, c)...)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{})
		return err == nil
	})
}

// attack is what each of many connections sends.
type attack struct {
	name string
	run  func(f *frames, at target)
}

func attacks() []attack {
	var small bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // fails for an unknown level alone
	large := protowire.AppendTag(nil, 1, protowire.BytesType)
	large = append(protowire.AppendVarint(large, 15*mib), make([]byte, 15*mib)...)
	_, _ = zip.Write(large)
	_ = zip.Close()
	bomb := prefixed(1, small.Len(), small.Bytes())
	unfinished := prefixed(0, 16*mib-1, large)
	wide := make([]hpack.HeaderField, 400)
	for i := range wide {
		wide[i].Name = string([]byte{'a' + byte(i%26), 'a' + byte(i/26)})
	}
	return []attack{
		{"gzip", func(f *frames, at target) {
			for i := range uint32(16) {
				f.call(2*i+1, at.path, hpack.HeaderField{Name: "grpc-encoding", Value: "gzip"})
				f.data(2*i+1, bomb, 16<<10, true)
			}
		}},
		{"unfinished", func(f *frames, at target) {
			f.call(1, at.path)
			f.call(3, at.path)
			f.data(1, unfinished[:15*mib], 16<<10, false)
			f.data(3, unfinished[:15*mib], 16<<10, false)
		}},
		{"single bytes", func(f *frames, at target) {
			f.call(1, at.path)
			f.data(1, unfinished[:mib/4], 1, false)
		}},
		{"empty messages", func(f *frames, at target) {
			empties := bytes.Repeat([]byte{byte(at.field)<<3 | byte(protowire.BytesType), 0}, mib-1)
			whole := prefixed(0, len(empties), empties)
			for i := range uint32(8) {
				f.call(2*i+1, at.batch)
				f.data(2*i+1, whole, 16<<10, true)
			}
		}},
		{"headers", func(f *frames, at target) {
			for i := range uint32(256) {
				f.call(2*i+1, at.path, wide...)
			}
		}},
	}
}

func testBounds(t *testing.T, secure bool) {
	needsProc(t)
	for _, attack := range attacks() {
		t.Run(attack.name, func(t *testing.T) { testBound(t, secure, attack) })
	}
}

func testBound(t *testing.T, secure bool, attack attack) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Secure = secure })
	admin := c.Addrs(localcluster.RoleAlloc)[0]
	taker := polite(t, c)
	var all sync.WaitGroup
	for _, at := range targets(c) {
		for range 64 {
			all.Go(func() {
				if f := openFrames(t, c, at.Addr); f != nil {
					attack.run(f, at)
				}
			})
		}
	}
	answers(t, c, admin)
	all.Wait()
	answers(t, c, admin)
	for name, at := range targets(c) {
		got := resident(t, at.ServingPid())
		t.Logf("the %s had %d MiB", name, got/mib)
		if got > mostResident {
			t.Errorf("the %s had %d MiB, want at most %d", name, got/mib, mostResident/mib)
		}
	}
	if err := taker.stopped(); err != nil {
		t.Errorf("a polite caller beside them: %v", err)
	}
}

func TestDaemonsMemoryIsBoundedWhateverCallersSend(t *testing.T) { testBounds(t, false) }

func TestDaemonsMemoryIsBoundedWhateverStrangersSend(t *testing.T) { testBounds(t, true) }
