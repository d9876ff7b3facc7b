package disks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

const patience = harness.Patience

var (
	secret   = seq.NewSecret("")
	session  = secret.Session()
	register = seq.SectionRegister(3)
)

func TestMain(m *testing.M) { harness.Main(m) }

// initialise makes the database of a cluster of one store.
func initialise(t *testing.T, dir string) {
	t.Helper()
	harness.Run(t, harness.Command(harness.Within(t), t, nil, "storesvr",
		"init", "--data-dir", dir, "--cluster", "disks", "--name", "a", "--members", "a", "--sections", "16")).Want(t, 0)
}

// process is a storesvr, perhaps below strace.
type process struct {
	cmd  *exec.Cmd
	log  syncBuffer
	done chan struct{} // closed when it has ended
}

// syncBuffer is written by the process and read by the test.
type syncBuffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start runs a storesvr; before are the words in front of its command line.
func start(t *testing.T, dir string, before []string, flags ...string) *process {
	t.Helper()
	cmd := harness.Command(context.Background(), t, nil, "storesvr", append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin", ""}, flags...)...)
	if len(before) > 0 {
		traced := exec.Command(before[0], append(slices.Clone(before[1:]), cmd.Args...)...)
		traced.Env, cmd = cmd.Env, traced
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.WaitDelay = time.Second // what strace has traced may hold them
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process that was started; of one below strace that is strace, which
// takes what it traces along.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// until waits for a condition, or that the process ends; false then.
func (p *process) until(t *testing.T, what string, ok func() bool) bool {
	t.Helper()
	for ctx := harness.Within(t); ; <-time.After(5 * time.Millisecond) {
		switch {
		case ok():
			return true
		case p.ended():
			return false
		case ctx.Err() != nil:
			t.Fatalf("after %v still not: %s\n%s", patience, what, p.log.String())
		}
	}
}

// addr waits until the store listens; "" if it ended before.
func (p *process) addr(t *testing.T) (addr string) {
	t.Helper()
	p.until(t, "listens", func() bool {
		_, rest, found := strings.Cut(p.log.String(), " addr=")
		if !found || !strings.Contains(rest, "\n") {
			return false
		}
		addr = strings.Fields(rest)[0]
		return true
	})
	return addr
}

// wantEnd waits for the end of a process that has to fail, saying why.
func (p *process) wantEnd(t *testing.T, why string) {
	t.Helper()
	p.until(t, "the process ends", p.ended)
	if said := p.log.String(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said, why) {
		t.Errorf("ended with code %d and %q, want code 1 and %q", p.cmd.ProcessState.ExitCode(), said, why)
	}
}

// caller asks one store and remembers what it was promised.
type caller struct {
	store *storeclient.Client
	ref   quorum.Ref

	acked, asked     uint64 // max of the register: acknowledged, ever asked for
	round, preparing uint64 // of the epoch: acknowledged, ever asked for
}

// connect binds the store if it is new. Nil if the process ended meanwhile.
func (c *caller) connect(t *testing.T, p *process) bool {
	t.Helper()
	addr := p.addr(t)
	if addr == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() { // a store that dies is not waited for
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	cluster, err := storeclient.Connect(ctx, []string{addr})
	if err != nil {
		if p.ended() {
			return false
		}
		t.Fatalf("connect: %v\n%s", err, p.log.String())
	}
	t.Cleanup(func() { _ = cluster.Close() })
	c.store, c.ref = cluster.Stores[0].Client, cluster.Identity.Ref
	return true
}

// prepare asks for the next epoch, and step for a larger max under it. Both wait until
// there is an answer or the store is gone.
func (c *caller) prepare(ctx context.Context) error {
	c.preparing = max(c.preparing, c.round) + 1
	reply, err := c.store.Prepare(ctx, quorum.PrepareRequest{Ref: c.ref, Session: session, Secret: secret, Items: []quorum.PrepareItem{{Register: register, Round: c.preparing}}})
	if err := verdict(reply, err); err != nil {
		return err
	}
	c.round = c.preparing
	return nil
}

func (c *caller) step(ctx context.Context) error {
	c.asked++
	reply, err := c.store.Step(ctx, quorum.StepRequest{Ref: c.ref, Session: session, Secret: secret, Items: []quorum.StepItem{{Register: register, Round: c.preparing, Max: c.asked}}})
	if err := verdict(reply, err); err != nil {
		return err
	}
	c.acked, c.round = c.asked, c.preparing
	return nil
}

// errVerdict is an answer other than yes.
var errVerdict = errors.New("refused")

func verdict(reply quorum.Reply, err error) error {
	if err != nil {
		return err
	}
	if v := reply.Results[0].Verdict; v != quorum.VerdictOK {
		return fmt.Errorf("%w: %v", errVerdict, v)
	}
	return nil
}

// check reads the register and compares it with what was acknowledged and asked for.
func (c *caller) check(t *testing.T) {
	t.Helper()
	reply, err := c.store.Read(harness.Within(t), quorum.ReadRequest{Ref: c.ref, Session: session, Registers: []seq.Register{register}})
	if err != nil {
		t.Fatal(err)
	}
	got := reply.Results[0]
	if got.Max < c.acked || got.Max > c.asked {
		t.Errorf("max is %d, acknowledged was %d, asked for %d", got.Max, c.acked, c.asked)
	}
	if got.Promised.Round < c.round || got.Promised.Round > c.preparing || got.Promised.Less(got.Accepted) {
		t.Errorf("promised %v, accepted %v; acknowledged was round %d, asked for %d", got.Promised, got.Accepted, c.round, c.preparing)
	}
	// The values that were read are durable: no later read may see lower ones.
	c.acked, c.round = got.Max, got.Promised.Round
}
