package netlab

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// endPatience is how long a program inside may take to stop what it started.
const endPatience = 20 * time.Second

// RunInside runs a program in the hub's namespace until it ends. When ctx ends it is
// sent SIGTERM and waited for; the error is then that of ctx.
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
