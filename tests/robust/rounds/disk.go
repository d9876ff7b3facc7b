package rounds

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// diskPatience bounds one answer of the helper, which takes milliseconds where there is
// time for it.
const diskPatience = 5 * time.Minute

// disk is a store's directory on a file system that forgets what was not fsynced: a
// program that is told what to do by lines on its standard input, and answers each.
type disk struct {
	dir   string
	cmd   *exec.Cmd
	input io.WriteCloser

	mu      sync.Mutex  // one question at a time
	answers chan string // closed when the helper has ended
}

// mountDisk mounts over dir; what dir holds becomes what is durable.
func mountDisk(helper, dir string) (*disk, error) {
	d := &disk{dir: dir, answers: make(chan string, 1)}
	d.cmd = exec.Command(helper, dir)
	d.cmd.Stderr = os.Stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the cluster first
	var err error
	if d.input, err = d.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	output, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	go func() {
		defer close(d.answers)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			d.answers <- lines.Text()
		}
	}()
	if _, err := d.answer("mount"); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// tell gives one order and returns what was answered after "ok".
func (d *disk) tell(format string, args ...any) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	order := fmt.Sprintf(format, args...)
	if _, err := io.WriteString(d.input, order+"\n"); err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrDisk, order, err)
	}
	return d.answer(order)
}

func (d *disk) answer(order string) (string, error) {
	select {
	case text, ok := <-d.answers:
		if rest, good := strings.CutPrefix(text, "ok"); ok && good {
			return strings.TrimSpace(rest), nil
		}
		return "", fmt.Errorf("%w: %s of %s: %q", ErrDisk, order, filepath.Base(d.dir), text)
	case <-time.After(diskPatience):
		return "", fmt.Errorf("%w: %s of %s: no answer in %v", ErrDisk, order, filepath.Base(d.dir), diskPatience)
	}
}

// close unmounts and ends the helper; it is killed if it does not end by itself, which
// takes the mount away too.
func (d *disk) close() {
	_ = d.input.Close()
	done := make(chan struct{})
	go func() {
		for range d.answers { // until its output ends
		}
		_ = d.cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(diskPatience):
		_ = d.cmd.Process.Kill()
		<-done
	}
}
