package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// machine runs the simulator's test binary as WebAssembly. All that could differ from
// one run to the next comes from the seed: the guest has one thread, its clock is a
// counter of the readings, and its source of randomness, from which the Go runtime takes
// the order of maps and select, is drawn from the seed. Nothing is collected and no
// allocation is sampled, since both would make the order of things depend on how much was
// allocated, and so on whether events are being traced. Every run gets a fresh instance.
type machine struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

var errBuild = errors.New("the simulator does not build for wasip1")

// build compiles the simulator of the module at root to a file in dir.
func build(ctx context.Context, root, dir string) (string, error) {
	file := filepath.Join(dir, "sim.wasm")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", file, "./tests/sim")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %w\n%s", errBuild, err, out)
	}
	return file, nil
}

// newMachine compiles the file once for all runs. If the cache folder is empty, there is no cache.
func newMachine(ctx context.Context, file, cache string) (*machine, error) {
	// Not WithCloseOnContextDone: it leaves the compiled code at every loop, and so at every
	// call of a Go function, which makes it many times slower. The clock ends a run instead.
	cfg := wazero.NewRuntimeConfig()
	if cache != "" {
		c, err := wazero.NewCompilationCacheWithDir(cache)
		if err != nil {
			return nil, fmt.Errorf("compilation cache: %w", err)
		}
		cfg = cfg.WithCompilationCache(c)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, errors.Join(err, r.Close(ctx))
	}
	compiled, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("compile %s: %w", file, err), r.Close(ctx))
	}
	return &machine{r, compiled}, nil
}

func (m *machine) close(ctx context.Context) error { return m.runtime.Close(ctx) }

// seeded is the guest's source of randomness.
func seeded(seed uint64) *rand.ChaCha8 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	return rand.NewChaCha8(sha256.Sum256(b[:]))
}

// run simulates one job in a fresh instance.
func (m *machine) run(ctx context.Context, job sim.Job, traced bool) (sim.Result, error) {
	var none sim.Result
	text, err := json.Marshal(job)
	if err != nil {
		return none, err
	}
	dir, err := os.MkdirTemp("", "simrun-")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	if traced {
		if err := os.WriteFile(filepath.Join(dir, sim.TraceFile), nil, 0o600); err != nil {
			return none, err
		}
	}
	var out bytes.Buffer
	tick := int64(0) // the guest's clock: one microsecond a reading
	read := func() int64 {
		if ctx.Err() != nil {
			panic(sys.NewExitError(sys.ExitCodeContextCanceled))
		}
		tick += 1000
		return tick
	}
	cfg := wazero.NewModuleConfig().WithName("").WithArgs("sim", "-test.run=^TestGuest$").
		WithEnv("SIM_JOB", string(text)).WithEnv("TMPDIR", "/tmp").WithEnv("PWD", "/").WithEnv("GOGC", "off").WithEnv("GODEBUG", "memprofilerate=0").
		WithFSConfig(wazero.NewFSConfig().WithDirMount(dir, "/tmp")).
		WithStdout(&out).WithStderr(&out).WithRandSource(seeded(job.Seed)).
		WithNanotime(read, 1).WithNanosleep(func(ns int64) { tick += ns }).
		WithWalltime(func() (int64, int32) { t := read(); return 1_700_000_000 + t/1e9, int32(t % 1e9) }, 1)
	instance, err := m.runtime.InstantiateModule(ctx, m.compiled, cfg)
	if instance != nil {
		defer instance.Close(ctx)
	}
	var exit *sys.ExitError
	if ctx.Err() != nil {
		return none, fmt.Errorf("seed %d: %w\n%s", job.Seed, context.Cause(ctx), tail(out.Bytes()))
	}
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 0) {
		return none, fmt.Errorf("seed %d: %w\n%s", job.Seed, err, tail(out.Bytes()))
	}
	return parse(job, out.Bytes())
}

// resultMark begins the line of a guest that is a result.
var resultMark = []byte("RESULT ")

// parse finds the result in what the guest printed.
func parse(job sim.Job, out []byte) (sim.Result, error) {
	var r sim.Result
	for line := range bytes.Lines(out) {
		if text, ok := bytes.CutPrefix(line, resultMark); ok {
			if err := json.Unmarshal(text, &r); err != nil {
				return r, fmt.Errorf("seed %d: result: %w", job.Seed, err)
			}
			return r, nil
		}
	}
	return r, fmt.Errorf("seed %d: no result\n%s", job.Seed, tail(out))
}

// tail is the end of what a guest printed.
func tail(b []byte) []byte {
	const most = 8 << 10
	return b[max(0, len(b)-most):]
}
