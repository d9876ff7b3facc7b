package integration

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// The members change after an AllocSvr that starts has found them, and before it reads what it
// must know: it finds them again.
func TestAnAllocSvrThatFoundTheMembersOfBeforeFindsThemAgain(t *testing.T) {
	store := harness.Stores(t, 1, seq.Space{Sections: sections, Step: 500})[0]
	var found, refused atomic.Int32
	addr := harness.Forward(t, store, func(method string, _ []byte, after bool) error {
		switch {
		case method == pb.Store_Describe_FullMethodName && !after:
			found.Add(1)
		case method == pb.Store_Read_FullMethodName && !after && found.Load() < 2:
			refused.Add(1)
			return rpc.ToStatus(seq.ErrStaleEra)
		}
		return nil
	})
	c := &cluster{t: t, all: sections}
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Lease, cfg.Stores, cfg.Logger = "alloc-1", "127.0.0.1:0", lease, []string{addr}, slog.New(slog.DiscardHandler)
	c.run(&alloc{}, cfg)
	c.until("every section is served", func() bool { return c.served(0) == c.all })
	if refused.Load() == 0 {
		t.Error("it read nothing by the first list")
	}
}
