package processes

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// oddSeeds are drawn sequences of frames that every run sends; FUZZ_SEED is another one alone.
var oddSeeds = []uint64{1, 2, 3}

// TestOddFramesAreBorne sends drawn HTTP/2 frames, whole and broken ones, to the gRPC port of each
// daemon. Memory stays bounded, a polite caller is served, and no daemon ends.
func TestOddFramesAreBorne(t *testing.T) {
	needsProc(t)
	seeds := oddSeeds
	if text := os.Getenv("FUZZ_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{seed}
	}
	c := start(t, nil)
	pids := map[string]int{}
	for name, at := range targets(c) {
		pids[name] = at.ServingPid()
	}
	taker := polite(t, c)
	for _, seed := range seeds {
		var all sync.WaitGroup
		for name, at := range targets(c) {
			for k := range uint64(6) {
				all.Go(func() { sendOdd(t, c, at, rand.New(rand.NewPCG(seed, uint64(len(name))<<8|k))) })
			}
		}
		all.Wait()
		answers(t, c, c.Addrs(localcluster.RoleAlloc)[0])
		for name, at := range targets(c) {
			if got := resident(t, at.ServingPid()); got > mostResident {
				t.Errorf("seed %d: the %s had %d MiB, want at most %d", seed, name, got/mib, mostResident/mib)
			}
			if at.ServingPid() != pids[name] {
				t.Errorf("seed %d: the %s began again", seed, name)
			}
		}
	}
	// The router may have closed connections of this host; it serves the next ones all the same.
	harness.Until(t, "the router to serve", func() bool { return routerServes(t, c) })
	if err := taker.stopped(); err != nil {
		t.Errorf("a polite caller beside them: %v", err)
	}
}

// routerServes reports whether the router hands out a number on a new connection.
func routerServes(t *testing.T, c *localcluster.Cluster) bool {
	t.Helper()
	conn, err := rpc.Dial(c.Addrs(localcluster.RoleRouter)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), attempt)
	defer cancel()
	_, err = pb.NewSequenceClient(conn).Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 43}})
	return err == nil
}

// sendOdd sends 4,000 drawn frames on as many connections as the server closes, at most 200.
func sendOdd(t *testing.T, c *localcluster.Cluster, at target, r *rand.Rand) {
	left := 4000
	for tries := 0; left > 0 && tries < 200; tries++ {
		f := openFrames(t, c, at.Addr)
		if f == nil {
			continue
		}
		for next := uint32(1); left > 0 && !f.over(); left-- {
			next = f.odd(r, at, next)
		}
		_ = f.Close()
	}
}

// odd sends one drawn frame, and returns the next stream that was never opened.
func (f *frames) odd(r *rand.Rand, at target, next uint32) uint32 {
	some := func() uint32 { return r.Uint32N(next + 4) } // an open, an ended, a new or no stream
	junk := func(most int) []byte {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	paths := []string{at.path, at.batch, "/", "", "/seqsvr.v1.Sequence/None", "/grpc.health.v1.Health/Check", "/" + string(junk(64))}
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		var more []hpack.HeaderField
		for range r.IntN(4) {
			more = append(more, hpack.HeaderField{Name: []string{"grpc-timeout", "grpc-encoding", "authorization", ":path", "x"}[r.IntN(5)], Value: string(junk(200))})
		}
		f.call(next, paths[r.IntN(len(paths))], more...)
		next += 2
	case 4, 5, 6:
		b := junk(8 << 10)
		if r.IntN(2) == 0 {
			b = prefixed(byte(r.IntN(3)), r.IntN(1<<r.IntN(32)), b)
		}
		f.do(func() error { return f.fr.WriteData(some(), r.IntN(2) == 0, b) })
	case 7:
		f.do(func() error { return f.fr.WriteRSTStream(some(), http2.ErrCode(r.Uint32N(20))) })
	case 8:
		f.do(func() error {
			return f.fr.WriteSettings(http2.Setting{ID: http2.SettingID(r.IntN(9)), Val: r.Uint32() >> r.IntN(32)})
		})
	case 9:
		f.do(func() error { return f.fr.WriteWindowUpdate(some(), r.Uint32()>>r.IntN(32)) })
	case 10:
		f.do(func() error { return f.fr.WritePing(r.IntN(2) == 0, [8]byte(append(junk(8), make([]byte, 8)...))) })
	case 11:
		f.do(func() error { return f.fr.WriteContinuation(some(), r.IntN(2) == 0, junk(512)) })
	case 12:
		f.do(func() error {
			return f.fr.WritePriority(some(), http2.PriorityParam{StreamDep: some(), Weight: uint8(r.Uint32())})
		})
	default: // a frame of any type, whose length may be a lie
		b := junk(256)
		head := binary.BigEndian.AppendUint32(nil, uint32(len(b))<<8|uint32(r.IntN(12)))
		if r.IntN(8) == 0 {
			head = binary.BigEndian.AppendUint32(nil, r.Uint32())
		}
		head = binary.BigEndian.AppendUint32(append(head, byte(r.Uint32())), some())
		f.do(func() error { _, err := f.Write(append(head, b...)); return err })
	}
	return next
}
