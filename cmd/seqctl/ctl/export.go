package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/floorfile"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// errStringKeys: the string keys of a space cannot be listed.
var errStringKeys = errors.New("the space has string keys")

// export is one that is being written.
type export struct {
	space, keys, out string
	uids, sections   bool

	c   *client.Client
	of  *seq.Space
	w   *floorfile.Writer
	bar *ui.Progress
}

func exportCommand() *cobra.Command {
	o, e := &Options{}, &export{}
	cmd := &cobra.Command{
		Use:   "export --keys FILE|--uids|--sections",
		Short: "write the last numbers of many keys to a file that raise --file reads",
		Long: `export reads the numbers of a space, taking none, and writes lines that seqctl raise --file reads.
No line is below a number that was handed out before export began: to move elsewhere, export and raise
while callers go on, move the callers, then do both once more.

  --keys FILE   what stands in FILE: UIDs, or string keys in quotes, one a line
  --uids        all UIDs that AllocSvr have in memory, and for each section what holds for those that they
                have not: a cluster with as many sections is needed to take that. It is for spaces without
                string keys, which nobody can list
  --sections    for each section what holds for all of its keys: UIDs and string keys begin above the
                busiest of their section

A line with upper-bound is of a key of which nothing was taken since the last takeover, or which was
dropped from memory: at most that was handed out. --uids and --sections are for operators.`,
		Example: "  seqctl export --uids --out user.txt\n  seqctl export --space room --keys rooms.txt",
		Args:    ExactArgs(),
	}
	o.AddTo(cmd, chunkTimeout)
	cmd.Flags().Lookup("timeout").Usage = "how long to try for one page or 10,000 keys, retries included"
	o.AddSpaceTo(cmd, &e.space)
	cmd.Flags().StringVar(&e.keys, "keys", "", "read the keys in this `file`, \"-\" for standard input; empty: they are not listed")
	cmd.Flags().BoolVar(&e.uids, "uids", false, "all UIDs in memory, and their sections")
	cmd.Flags().BoolVar(&e.sections, "sections", false, "the sections alone")
	cmd.Flags().StringVar(&e.out, "out", "", "`file` to be made once all is there; one that is there is left as it is; empty: standard output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := o.Check(); err != nil {
			return err
		}
		given := 0
		for _, flag := range []string{"keys", "uids", "sections"} {
			if cmd.Flags().Changed(flag) {
				given++
			}
		}
		if given != 1 {
			return daemon.Usage(errors.New("expected one of --keys FILE, --uids and --sections"))
		}
		return plain(o.Addr, e.run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr()))
	}
	return cmd
}

func (e *export) run(ctx context.Context, o *Options, stdout, stderr io.Writer) error {
	return o.clientOfSpace(ctx, e.space, func(c *client.Client, of *seq.Space) error {
		e.c, e.of = c, of
		return e.into(stdout, func(w io.Writer) error {
			e.w = floorfile.NewWriter(w, fmt.Sprintf("space %q of cluster %s, %d sections, begun %s", of.Name, c.Caller().Table().ClusterID(), of.Sections, time.Now().UTC().Format(time.RFC3339)))
			e.bar = ui.NewProgress(stderr, "export", 0)
			defer e.bar.Done()
			err := e.all(ctx)
			switch {
			case ctx.Err() != nil:
				return errors.New("interrupted")
			case err != nil:
				return err
			}
			return e.w.End()
		})
	})
}

// into has the export written to --out, which comes to be when it is whole, or to stdout.
func (e *export) into(stdout io.Writer, write func(io.Writer) error) error {
	if e.out == "" {
		return write(stdout)
	}
	if _, err := os.Lstat(e.out); err == nil {
		return fmt.Errorf("%w: %s", os.ErrExist, e.out)
	}
	file, err := os.CreateTemp(filepath.Dir(e.out), filepath.Base(e.out)+".tmp*")
	if err != nil {
		return err
	}
	err = write(file)
	if err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close()); err == nil {
		err = os.Link(file.Name(), e.out) // not Rename: it would replace one that came meanwhile
	}
	return errors.Join(err, os.Remove(file.Name()))
}

func (e *export) all(ctx context.Context) error {
	if e.keys != "" {
		in, err := openInput(e.keys)
		if err != nil {
			return err
		}
		defer in.Close()
		from := floorfile.NewReader(in)
		return inOrder(ctx, func() ([]floorfile.Line, bool, error) { return keysIn(from) }, e.currents,
			func(_, lines []floorfile.Line) error { return e.put(lines...) })
	}
	for at := range e.of.Sections {
		if err := e.section(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (e *export) put(lines ...floorfile.Line) error {
	for _, l := range lines {
		if err := e.w.Write(l); err != nil {
			return err
		}
	}
	e.bar.Add(uint64(len(lines)))
	return nil
}

// keysIn reads some keys; numbers beside them are not looked at.
func keysIn(from *floorfile.Reader) (lines []floorfile.Line, ok bool, err error) {
	for len(lines) < seq.MaxBatch {
		l, err := from.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, len(lines) > 0, nil
		case err != nil:
			return nil, false, err
		case l.Sections == 0:
			lines = append(lines, l)
		}
	}
	return lines, true, nil
}

// currents reads the numbers of keys.
func (e *export) currents(ctx context.Context, keys []floorfile.Line) ([]floorfile.Line, error) {
	var uids []seq.UID
	var names []string
	for _, l := range keys {
		if l.Key != "" {
			names = append(names, l.Key)
		} else {
			uids = append(uids, l.UID)
		}
	}
	var ofUIDs, ofNames []client.Value
	var err error
	if len(uids) > 0 {
		ofUIDs, err = e.c.Current(ctx, e.of.Name, uids)
	}
	if len(names) > 0 && err == nil {
		ofNames, err = e.c.CurrentKeys(ctx, e.of.Name, names)
	}
	if err != nil {
		return nil, err
	}
	out := make([]floorfile.Line, len(keys))
	for i, l := range keys {
		from := &ofUIDs
		if l.Key != "" {
			from = &ofNames
		}
		v := (*from)[0]
		if *from = (*from)[1:]; v.Err != nil {
			return nil, v.Err
		}
		out[i] = floorfile.Line{UID: l.UID, Key: l.Key, AtLeast: v.Seq, Given: true, UpperBound: v.UpperBound}
	}
	return out, nil
}

// section writes what is known of a section. Its line comes last: the base that it tells only
// rises, and covers what left the memory between two pages.
func (e *export) section(ctx context.Context, at uint32) error {
	owner := pb.NewAdminClient(e.c.Caller().OwnerOf(e.of.First + seq.SectionID(at)))
	for from := uint64(0); ; {
		p, err := owner.Counters(ctx, &pb.CountersRequest{Space: e.of.Name, Section: at, From: from})
		if err != nil {
			return fmt.Errorf("section %d: %w", at, err)
		}
		if e.uids && p.GetOthers() > 0 {
			return fmt.Errorf("%w: section %d has the counters of %d: list them with --keys FILE, or take --sections", errStringKeys, at, p.GetOthers())
		}
		floor := p.GetHighest()
		if e.uids {
			floor = p.GetBase()
			for i, uid := range p.GetUids() {
				if err := e.put(floorfile.Line{UID: seq.UID(uid), AtLeast: seq.Seq(p.GetValues()[i]), Given: true}); err != nil {
					return err
				}
			}
		}
		if from = p.GetNext(); from > 0 && e.uids {
			continue
		}
		if floor == 0 {
			return nil
		}
		return e.put(floorfile.Line{Section: at, Sections: e.of.Sections, AtLeast: seq.Seq(floor), Given: true, UpperBound: true})
	}
}
