//go:build unix

package daemon

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"
)

func TestMainHearsTheSignalsOfTheProcess(t *testing.T) {
	code := Main("seqd", nil, func(ctx context.Context, _ []string, _, _ io.Writer) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if code != ExitOK {
		t.Errorf("got %d, want %d", code, ExitOK)
	}
}
