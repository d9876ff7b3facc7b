package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// poll is the time between two looks at a condition in another process.
	poll = 10 * time.Millisecond
	// startPatience bounds how long the process that runs a cluster of others may take to
	// start a node of it.
	startPatience = 60 * time.Second
)

// readyFile is what `seqctl dev --processes --ready-file` writes.
type readyFile struct {
	GRPC      string         `json:"grpc"`
	Dev       int            `json:"dev"` // the process that restarts ended processes at SIGHUP; zero if there is none
	Processes []readyProcess `json:"processes"`
}

type readyProcess struct {
	localcluster.Node
	Pid int `json:"pid"`
}

func readReady(path string) (readyFile, error) {
	var f readyFile
	text, err := os.ReadFile(path)
	if err == nil {
		if json.Unmarshal(text, &f) != nil {
			err = errors.New("it is not what seqctl dev --processes --ready-file writes")
		}
	}
	switch {
	case err != nil:
		return f, fmt.Errorf("%w %s: %w", ErrReadyFile, path, err)
	case f.GRPC == "" || len(f.Processes) == 0:
		return f, fmt.Errorf("%w %s: no address or no processes in it", ErrReadyFile, path)
	}
	return f, nil
}

// Attach finds a cluster that others run: by the ready file, or without processes by
// one address. etcd is where its registers are, if not in StoreSvr: its members are not among
// what is broken. patience bounds every wait for what must happen there.
func Attach(ctx context.Context, addr, path string, etcd etcdclient.Flags, patience time.Duration) (*Cluster, error) {
	c := &Cluster{Patience: patience, processes: map[string]Process{}, etcd: etcd}
	if path == "" {
		return c, c.askNodes(ctx, addr)
	}
	f, err := readReady(path)
	if err != nil {
		return nil, err
	}
	known := func(p readyProcess) bool { return p.Addr == addr }
	if addr != "" && addr != f.GRPC && !slices.ContainsFunc(f.Processes, known) {
		return nil, fmt.Errorf("%w %s: it is of the cluster at %s, not at %s", ErrReadyFile, path, f.GRPC, addr)
	}
	for _, p := range f.Processes {
		if p.Pid == os.Getpid() || p.Pid <= 1 || p.Pid == f.Processes[0].Pid && len(c.Nodes) > 0 {
			return nil, fmt.Errorf("%w %s: its daemons are no processes of their own (seqctl dev --processes)", ErrReadyFile, path)
		}
		c.Nodes = append(c.Nodes, p.Node)
		c.processes[p.Name] = &foreign{Node: p.Node, pid: p.Pid, ready: path}
	}
	if len(c.Role(store)) == 0 && !c.OnEtcd() {
		return nil, fmt.Errorf("%w: no StoreSvr in %s: expected --etcd", ErrEngine, path)
	}
	return c, nil
}

// askNodes asks one node for the addresses of all.
func (c *Cluster) askNodes(ctx context.Context, addr string) error {
	conn, err := rpc.Dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	call, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	reply, err := pb.NewSequenceClient(conn).Routes(call, &pb.RoutesRequest{})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnhealthy, addr, err)
	}
	for _, n := range reply.GetRoutes().GetNodes() {
		c.Nodes = append(c.Nodes, localcluster.Node{Role: alloc, Name: n.GetName(), Addr: n.GetAddr()})
	}
	if len(c.Nodes) == 0 {
		return fmt.Errorf("%w: %w", ErrUnhealthy, seq.ErrNoRoute)
	}
	first, err := rpc.Dial(c.Nodes[0].Addr)
	if err != nil {
		return err
	}
	defer first.Close()
	status, err := pb.NewAdminClient(first).Status(call, &pb.StatusRequest{})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnhealthy, c.Nodes[0].Name, err)
	}
	for _, st := range status.GetStores() {
		if c.OnEtcd() {
			break
		}
		c.Nodes = append(c.Nodes, localcluster.Node{Role: store, Name: st.GetAddr(), Addr: st.GetAddr()})
	}
	for _, m := range status.GetMembers() {
		if m.GetRole() == string(router) && m.GetState() == "alive" {
			c.Nodes = append(c.Nodes, localcluster.Node{Role: router, Name: m.GetName(), Addr: m.GetAddr()})
		}
	}
	return nil
}

// foreign is a process that another one started. Its command line, which names its address, tells it from a
// later process with the same id.
type foreign struct {
	localcluster.Node
	pid   int
	ready string // file that its starter keeps the process ids in
}

func (f *foreign) alive() bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", f.pid))
	return err == nil && bytes.Contains(line, []byte("\x00"+f.Addr+"\x00"))
}

func (f *foreign) signal(sig syscall.Signal) error {
	if !f.alive() {
		return fmt.Errorf("%s, pid %d: %w", f.Name, f.pid, localcluster.ErrNotRunning)
	}
	return syscall.Kill(f.pid, sig)
}

// Kill implements Process.
func (f *foreign) Kill() error { return f.end(context.Background(), syscall.SIGKILL) }

// Stop implements Process.
func (f *foreign) Stop(ctx context.Context) error { return f.end(ctx, syscall.SIGTERM) }

// Pause implements Process.
func (f *foreign) Pause() error { return f.signal(syscall.SIGSTOP) }

// Resume implements Process.
func (f *foreign) Resume() error { return f.signal(syscall.SIGCONT) }

func (f *foreign) end(ctx context.Context, sig syscall.Signal) error {
	if err := f.signal(sig); err != nil {
		return err
	}
	for f.alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s, pid %d, %v: %w", f.Name, f.pid, sig, ctx.Err())
		case <-time.After(poll):
		}
	}
	return nil
}

// Start asks the process that runs the cluster to start what has ended, and waits for
// the new process id. A supervising parent may have been faster.
func (f *foreign) Start() error {
	if f.alive() {
		return fmt.Errorf("start %s: %w", f.Name, localcluster.ErrRunning)
	}
	file, err := readReady(f.ready)
	if err != nil {
		return err
	}
	if file.Dev == 0 {
		return errors.New("nobody starts it again: " + f.ready + " names no process that would")
	}
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); <-time.After(20 * poll) {
		// Asked again and again: that process may not have seen the end yet.
		if err := syscall.Kill(file.Dev, syscall.SIGHUP); err != nil {
			return fmt.Errorf("ask pid %d to start %s: %w", file.Dev, f.Name, err)
		}
		file, err := readReady(f.ready)
		if err != nil {
			return err
		}
		for _, p := range file.Processes {
			if p.Name == f.Name && p.Pid != f.pid && p.Pid > 0 {
				f.pid = p.Pid
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w", f.Name, localcluster.ErrNotReady)
}
