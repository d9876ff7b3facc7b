package netlab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// endPatience bounds how long a program inside may take to stop its processes.
const endPatience = 20 * time.Second

// RunAgain makes a network with these nodes and runs this program again in its hub. The program gets its
// old arguments and the arguments from more, which receives the prefix to plan the same network by.
// RunAgain first removes namespaces of this kind that a killed process left. It removes its own when the
// program has ended, however it ended.
func RunAgain(ctx context.Context, kind string, nodes []string, more func(prefix string) []string, stdout, stderr io.Writer) error {
	if err := Available(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	Sweep(ctx, kind)
	n := New(Prefix(kind), nodes)
	defer n.Remove()
	if err := n.Build(ctx); err != nil {
		return err
	}
	argv := append([]string{self}, os.Args[1:]...)
	return n.RunInside(ctx, append(argv, more(n.prefix)...), stdout, stderr)
}

// RunInside runs a program in the hub's namespace until it ends. When ctx ends, RunInside sends it SIGTERM,
// waits for its end, and returns the error of ctx.
func (n *Network) RunInside(ctx context.Context, argv []string, stdout, stderr io.Writer) error {
	// The signal at the parent's death is bound to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.Hub()}, argv...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = insideAttributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endPatience
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
