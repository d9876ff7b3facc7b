package own

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

func TestWhatAGoBenchmarkPrintsIsRead(t *testing.T) {
	got, err := parseGoBench("goos: linux\nBenchmarkTakeover/sections=42950-2   \t 3\t 64000000 ns/op\t 61.5 prepare+step-ms\t 14317 taken\nPASS\n")
	want := map[string]float64{"ns/op": 64e6, "prepare+step-ms": 61.5, "taken": 14317}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := parseGoBench("PASS\n"); !errors.Is(err, errGoBench) {
		t.Errorf("got %v, want %v", err, errGoBench)
	}
}

func TestAClusterIsStartedLoadedAndMeasured(t *testing.T) {
	bin, err := filepath.Abs("../../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "storesvr")); testing.Short() || err != nil {
		t.Skip("needs the binaries that make build makes, and not -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for name, size := range map[string]Size{
		"on StoreSvr": {Stores: 3, Allocs: 1, Sections: 64},
		"on etcd":     {Stores: 3, Allocs: 1, Sections: 64, Etcd: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Start(ctx, bin, t.TempDir(), size)
			if errors.Is(err, localcluster.ErrNoEtcd) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			measured(ctx, t, c)
		})
	}
}

func measured(ctx context.Context, t *testing.T, c *Cluster) {
	t.Helper()
	s, err := c.Bench(ctx, 300*time.Millisecond, Flags(8, "--uids", "100")...)
	if err != nil || s.Rate <= 0 || s.P50 <= 0 || s.P50 > s.P999 || s.ClientCPU <= 0 {
		t.Errorf("got %+v and %v", s, err)
	}
	if _, err := c.Bench(ctx, 300*time.Millisecond, "--dist", "gauss"); err == nil {
		t.Error("a run that seqctl refuses is no error")
	}
	if m, err := c.MemoryMB(); err != nil || m < 1 {
		t.Errorf("got %v MB and %v", m, err)
	}
	if first, all, err := c.Restart(ctx); err != nil || first <= 0 || all < first {
		t.Errorf("a start took %v to the first number, %v to those of all sections, %v", first, all, err)
	}
	if took, err := c.Takeover(ctx, 64); err != nil || took <= 0 {
		t.Errorf("a takeover took %v, %v", took, err)
	}
	if took, err := c.Raise(ctx); err != nil || took <= 0 {
		t.Errorf("a Raise took %v, %v", took, err)
	}
}
