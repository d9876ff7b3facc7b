package drill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/seqsvr/seqsvr/internal/lab/netlab"
)

// insideNamespaces runs this program again in the hub of a network of its own. Told to
// end, it tells the other, which stops its cluster, and waits.
func (o *options) insideNamespaces(ctx context.Context, stdout, stderr io.Writer) error {
	errs := &lastError{to: stderr}
	err := netlab.RunAgain(ctx, namespacePrefix, o.nodes(), func(prefix string) []string { return []string{"--inside", prefix} }, stdout, errs)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if text := errs.text(); text != "" {
			return errors.New(text)
		}
		return fmt.Errorf("inside of the namespaces: %s", exit.ProcessState)
	}
	return err
}

// lastError passes lines on, but keeps those with which the program inside says why it
// failed: they are this program's own error.
type lastError struct {
	to    io.Writer
	rest  []byte // a line without its end
	lines []string
}

const ownName = "seqctl: "

// Write implements io.Writer.
func (l *lastError) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		line := string(l.rest[:end+1])
		l.rest = l.rest[end+1:]
		if len(l.lines) > 0 || strings.HasPrefix(line, ownName) {
			l.lines = append(l.lines, line)
		} else if _, err := io.WriteString(l.to, line); err != nil {
			return 0, err
		}
	}
}

func (l *lastError) text() string {
	text := strings.TrimPrefix(strings.Join(l.lines, ""), ownName)
	return strings.TrimSpace(strings.TrimPrefix(text, "drill: "))
}
