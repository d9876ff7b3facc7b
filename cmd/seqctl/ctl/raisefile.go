package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/floorfile"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
)

// chunkTimeout is the default of --timeout for work on a file, of each chunk of it: longer than any failover.
const chunkTimeout = time.Minute

// saveEvery bounds the work that must be done again after a kill.
const saveEvery = time.Second

var (
	errRefused  = errors.New("lines were refused")
	errProgress = errors.New("progress of something else")
)

// fileResult is the output of raise --file.
type fileResult struct {
	Space   string  `json:"space"`
	Lines   int     `json:"lines"` // of the file, with the lines of earlier runs
	Refused int     `json:"refused"`
	Resumed int     `json:"resumed"` // lines that earlier runs had done
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"` // lines a second, of this run
}

// progress is kept beside a file while it is raised: everything before Offset is done.
type progress struct {
	Cluster string `json:"cluster"`
	Space   string `json:"space"`
	Offset  int64  `json:"offset"`
	Sum     string `json:"sha256"` // of what stands before it
	Lines   int    `json:"lines"`
	Refused int    `json:"refused"`
}

// fileRaise is a raise --file on its way.
type fileRaise struct {
	o     *Options
	c     *client.Client
	space *seq.Space
	path  string
	keeps bool // the progress, beside the file
	errs  io.Writer

	in    *floorfile.Reader
	state progress
	saved time.Time
	bar   *ui.Progress
}

// raiseFile raises all that stands in a file, or from where it was stopped.
func raiseFile(ctx context.Context, o *Options, space, path string, stdout, stderr io.Writer) error {
	format, err := o.Check()
	if err != nil {
		return err
	}
	file, err := openInput(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return plain(o.Addr, o.clientOfSpace(ctx, space, func(c *client.Client, s *seq.Space) error {
		f := &fileRaise{o: o, c: c, space: s, path: path, keeps: path != "-", errs: stderr, in: floorfile.NewReader(file)}
		f.state = progress{Cluster: c.Caller().Table().ClusterID(), Space: s.Name}
		if err := f.resume(); err != nil {
			return err
		}
		total, err := linesOf(path, stderr)
		if err != nil {
			return err
		}
		begun, before := time.Now(), f.state.Lines
		f.bar = ui.NewProgress(stderr, "raise", total)
		f.bar.Add(uint64(before))
		err = inOrder(ctx, f.next, f.raise, f.done)
		f.bar.Done()
		if err != nil {
			return f.stopped(ctx, err)
		}
		took := time.Since(begun).Seconds()
		return f.finish(format, stdout, fileResult{Space: s.Name, Lines: f.state.Lines, Refused: f.state.Refused, Resumed: before, Seconds: took, Rate: float64(f.state.Lines-before) / took})
	}))
}

// clientOfSpace calls do with a client whose calls may each take --timeout.
func (o *Options) clientOfSpace(ctx context.Context, space string, do func(*client.Client, *seq.Space) error) error {
	find, cancel := context.WithTimeout(ctx, min(askTimeout, o.Timeout))
	defer cancel()
	c, err := o.Connect(find, client.Config{AttemptTimeout: AttemptTimeout, Timeout: o.Timeout})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Caller().Reach(find); err != nil {
		return err
	}
	m, _ := c.Caller().Table().Mapping()
	s, err := m.Space(space)
	if err != nil {
		return err
	}
	return do(c, s)
}

func openInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// linesOf is about how many lines there are, for the bar on a terminal; 0 if there is none.
func linesOf(path string, stderr io.Writer) (n uint64, err error) {
	if path == "-" || !ui.IsTerminal(stderr) {
		return 0, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for r := floorfile.NewReader(file); ; n++ {
		if _, err := r.Next(); err != nil {
			return n, nil // the work itself tells of a bad line
		}
	}
}

func (f *fileRaise) progressFile() string { return f.path + ".progress" }
func (f *fileRaise) refusedFile() string  { return f.path + ".refused" }

// resume goes on where an earlier run was stopped, if it was one of the same file, cluster
// and space.
func (f *fileRaise) resume() error {
	if !f.keeps {
		return nil
	}
	text, err := os.ReadFile(f.progressFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var old progress
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	wrong := func(what string) error {
		return fmt.Errorf("%w: %s is of %s: remove it to begin at the first line", errProgress, f.progressFile(), what)
	}
	switch {
	case err != nil:
		return wrong("no raise that can be read")
	case old.Cluster != f.state.Cluster:
		return wrong(fmt.Sprintf("cluster %q, and this one is %q", old.Cluster, f.state.Cluster))
	case old.Space != f.state.Space:
		return wrong(fmt.Sprintf("space %q, and --space is %q", old.Space, f.state.Space))
	}
	for at, _ := f.in.At(); at < old.Offset; at, _ = f.in.At() {
		if _, err := f.in.Next(); err != nil {
			return wrong("a longer file, or another one")
		}
	}
	if at, _ := f.in.At(); at != old.Offset || f.in.Sum() != old.Sum {
		return wrong("another file, or it was changed since")
	}
	f.state = old
	return nil
}

// done notes that a chunk and all before it are raised.
func (f *fileRaise) done(k *chunk, refused []refusal) error {
	if err := f.tell(refused); err != nil {
		return err
	}
	f.bar.Add(uint64(k.lines - f.state.Lines))
	f.state.Offset, f.state.Sum, f.state.Lines = k.offset, k.sum, k.lines
	f.state.Refused += len(refused)
	if f.keeps && time.Since(f.saved) > saveEvery {
		f.saved = time.Now()
		return localcluster.WriteJSON(f.progressFile(), f.state)
	}
	return nil
}

// tell writes lines that were refused beside the file, as lines that can be raised later. A
// kill before the progress is kept may have them there twice.
func (f *fileRaise) tell(refused []refusal) error {
	if len(refused) == 0 {
		return nil
	}
	out := f.errs
	if f.keeps {
		how := os.O_APPEND
		if f.state.Refused == 0 {
			how = os.O_TRUNC // what stands there is of a raise that ended
		}
		file, err := os.OpenFile(f.refusedFile(), os.O_CREATE|os.O_WRONLY|how, 0o644)
		if err != nil {
			return fmt.Errorf("keep refused lines: %w", err)
		}
		defer file.Close()
		out = file
	}
	for _, r := range refused {
		if _, err := fmt.Fprintf(out, "# %s\n%s\n", strings.ReplaceAll(r.err.Error(), "\n", " "), r.line); err != nil {
			return fmt.Errorf("keep refused lines: %w", err)
		}
	}
	return nil
}

// stopped keeps how far it came, and says how to go on.
func (f *fileRaise) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = errors.New("interrupted") // the text alone: this is no clean stop
	}
	if !f.keeps {
		return fmt.Errorf("after %d lines: %w; what was raised stays, and all may be raised again", f.state.Lines, err)
	}
	if f.state.Lines > 0 {
		if failed := localcluster.WriteJSON(f.progressFile(), f.state); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return fmt.Errorf("after %d lines: %w; the same command goes on from there", f.state.Lines, err)
}

func (f *fileRaise) finish(format ui.Format, stdout io.Writer, r fileResult) error {
	if f.keeps {
		if err := os.Remove(f.progressFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	err := ui.Print(stdout, format, r, func() *ui.Table {
		return ui.NewTable("space", "lines", "refused", "resumed", "rate", "took").
			Row(r.Space, r.Lines, r.Refused, r.Resumed, ui.Uint(uint64(r.Rate))+"/s", time.Duration(r.Seconds*float64(time.Second)))
	})
	if err != nil || r.Refused == 0 {
		return err
	}
	where := "see above"
	if f.keeps {
		where = "they are in " + f.refusedFile()
	}
	return fmt.Errorf("%w: %d of %d, %s", errRefused, r.Refused, r.Lines, where)
}
