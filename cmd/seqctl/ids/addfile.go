package ids

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// fileTimeout is the default of --timeout with --file, and callTimeout bounds each call of it.
	fileTimeout = 5 * time.Minute
	callTimeout = time.Minute
	// tagsAtOnce are put in one change, the most that an AllocSvr takes.
	tagsAtOnce = 2_000
	// mostTags and mostNamespaces are what a cluster takes.
	mostTags, mostNamespaces = 20_000, 1_024
	// namespacesAtOnce are added at a time.
	namespacesAtOnce = 8
)

// errLines: a file has lines that are wrong. Nothing was added.
var errLines = errors.New("lines are wrong, and nothing was added")

// fileResult is the output of add --file.
type fileResult struct {
	Lines     int `json:"lines"` // with a name
	Created   int `json:"created"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"` // they were as the file has them
}

func (r fileResult) print(w io.Writer, format ui.Format) error {
	return ui.Print(w, format, r, func() *ui.Table {
		return ui.NewTable("lines", "created", "changed", "unchanged").Row(r.Lines, r.Created, r.Changed, r.Unchanged)
	})
}

// addFlag adds --file to a verb that adds one thing, whose flags are settings of it. many adds the things of a
// file.
func addFlag(cmd *cobra.Command, o *ctl.Options, line string, many func(ctx context.Context, o *ctl.Options, in io.Reader) (fileResult, error)) {
	file, one, name := "", cmd.RunE, cmd.Args
	cmd.Flags().StringVar(&file, "file", "", "add what the lines of this `file` name, \"-\" for standard input: "+line+
		"; if a line is wrong, all wrong lines are told and none is added; --timeout is then of the file, "+ui.Duration(fileTimeout)+" unless given; empty: one")
	cmd.Args = ctl.RangeArgs(0, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case file == "" && len(args) == 0:
			return name(cmd, args)
		case file == "":
			return one(cmd, args)
		case len(args) > 0:
			return daemon.Usage(fmt.Errorf("%q and --file: expected one of them, since the lines of a file have names", args[0]))
		case !cmd.Flags().Changed("timeout"):
			o.Timeout = fileTimeout
		}
		return o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
			in := io.Reader(os.Stdin)
			if file != "-" {
				f, err := os.Open(file)
				if err != nil {
					return daemon.Usage(err)
				}
				defer f.Close()
				in = f
			}
			r, err := many(ctx, o, in)
			if err != nil {
				return err
			}
			return r.print(stdout, format)
		})(cmd, nil)
	}
}

// entry is a line of a file: a name and its settings.
type entry struct {
	line     int
	name     string
	settings map[string]string
}

// faults are the wrong lines of a file.
type faults map[int][]error

func (f faults) add(line int, err error) { f[line] = append(f[line], err) }

// err returns an errLines with all lines, in order, or nil.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	var text strings.Builder
	lines := make([]int, 0, len(f))
	for line := range f {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		for _, err := range f[line] {
			fmt.Fprintf(&text, "\n  line %d: %v", line, err)
		}
	}
	return daemon.Usage(fmt.Errorf("%d %w:%s", len(f), errLines, text.String()))
}

// readEntries reads lines of a name and KEY=VALUE settings. Empty lines and lines that begin with # have none.
func readEntries(in io.Reader, wrong faults, keys ...string) (entries []entry, err error) {
	named := map[string]int{}
	scan := bufio.NewScanner(in)
	line := 0
	for scan.Scan() {
		line++
		words := strings.Fields(scan.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		e := entry{line: line, name: words[0], settings: map[string]string{}}
		if before := named[e.name]; before > 0 {
			wrong.add(line, fmt.Errorf("%w: %q is in line %d too", seq.ErrBadArgument, e.name, before))
		}
		named[e.name] = line
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			_, twice := e.settings[key]
			if !slices.Contains(keys, key) || value == "" || twice {
				wrong.add(line, fmt.Errorf("%w: %q, expected once each and with a value: %s=", seq.ErrBadArgument, word, strings.Join(keys, "=, ")))
			}
			e.settings[key] = value
		}
		entries = append(entries, e)
	}
	if err := scan.Err(); err != nil {
		return nil, daemon.Usage(fmt.Errorf("line %d: %w", line+1, err))
	}
	return entries, nil
}

// number reads a setting, which may be missing.
func (e entry) number(wrong faults, key string, most uint64) uint64 {
	text, given := e.settings[key]
	if !given {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < 1 || n > most {
		wrong.add(e.line, fmt.Errorf("%w: %s=%s, expected 1 to %d", seq.ErrBadArgument, key, text, most))
	}
	return n
}

// addTags adds the tags of a file, or changes them.
func addTags(ctx context.Context, o *ctl.Options, in io.Reader) (r fileResult, err error) {
	wrong := faults{}
	entries, err := readEntries(in, wrong, "start", "min-step", "max-step", "template", "reset", "zone")
	if err != nil {
		return r, err
	}
	wants := make([]*pb.SegmentTag, len(entries))
	for i, e := range entries {
		wants[i] = &pb.SegmentTag{Tag: e.name, Start: e.number(wrong, "start", uint64(seq.MaxSeq)), MinStep: e.number(wrong, "min-step", maxStep), MaxStep: e.number(wrong, "max-step", maxStep),
			Template: e.settings["template"], Reset_: e.settings["reset"], Zone: e.settings["zone"]}
	}
	if len(entries) > mostTags {
		return r, daemon.Usage(fmt.Errorf("%w: %d tags, expected at most %d", seq.ErrBadArgument, len(entries), mostTags))
	}
	put := func(check bool) error {
		r = fileResult{Lines: len(entries), Unchanged: len(entries)}
		for from := 0; from < len(wants); from += tagsAtOnce {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			reply, err := askSegment(call, o, pb.SegmentClient.Put, &pb.SegmentPutRequest{Tags: wants[from:min(from+tagsAtOnce, len(wants))], CheckOnly: check})
			cancel()
			if err != nil && !check {
				return fmt.Errorf("%d of %d tags are added, and %d may be: run it again: %w", from, len(wants), min(tagsAtOnce, len(wants)-from), err)
			}
			if err != nil {
				return err
			}
			for _, e := range reply.GetErrors() {
				if i := from + int(e.GetIndex()); i < len(entries) {
					wrong.add(entries[i].line, errors.New(e.GetMessage()))
				}
			}
			created, changed := int(reply.GetTagsCreated()), int(reply.GetTagsChanged())
			r.Created, r.Changed, r.Unchanged = r.Created+created, r.Changed+changed, r.Unchanged-created-changed
		}
		return wrong.err()
	}
	if err := put(true); err != nil {
		return r, err
	}
	if r.Created > 0 {
		have, err := askSegment(ctx, o, pb.SegmentClient.List, &pb.SegmentListRequest{})
		if err != nil {
			return r, err
		}
		if n := len(have.GetTags()) + r.Created; n > mostTags {
			return r, fmt.Errorf("%w: the cluster has %d tags and would have %d, expected at most %d: none was added", seq.ErrBadArgument, len(have.GetTags()), n, mostTags)
		}
	}
	return r, put(false)
}

// addNamespaces records the namespaces of a file. Those that are recorded as the file has them stay.
func addNamespaces(ctx context.Context, o *ctl.Options, in io.Reader) (r fileResult, err error) {
	wrong := faults{}
	entries, err := readEntries(in, wrong, "layout", "alias", "overflow", "rollback")
	if err != nil {
		return r, err
	}
	have, err := askSnowflake(ctx, o, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{})
	if err != nil {
		return r, err
	}
	known, aliases, recorded := map[string]*pb.SnowflakeNamespace{}, map[uint32]string{}, 0
	for _, ns := range have.GetNamespaces() {
		if ns.GetVersion() > 0 {
			known[ns.GetName()], aliases[ns.GetAlias()] = ns, ns.GetName()
			recorded++
		}
	}
	var wants []*pb.SnowflakePutNamespaceRequest
	lines := map[string]int{}
	for _, e := range entries {
		want := &pb.SnowflakePutNamespaceRequest{Name: e.name, Layout: e.settings["layout"], Alias: uint32(e.number(wrong, "alias", 1<<32-1)),
			Overflow: e.settings["overflow"], Rollback: e.settings["rollback"]}
		old := known[e.name]
		err := checkNew(want, old)
		if other := aliases[want.Alias]; err == nil && want.Alias != 0 && other != "" && other != e.name {
			err = fmt.Errorf("%w: alias %d belongs to %q", seq.ErrUnsafeChange, want.Alias, other)
		}
		if err != nil {
			wrong.add(e.line, err)
		}
		aliases[want.Alias], lines[e.name] = e.name, e.line
		if old == nil {
			wants = append(wants, want)
		}
	}
	if n := recorded + len(wants); n > mostNamespaces {
		return r, fmt.Errorf("%w: the cluster has %d namespaces and would have %d, expected at most %d: none was added", seq.ErrBadArgument, recorded, n, mostNamespaces)
	}
	if err := wrong.err(); err != nil {
		return r, err
	}
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(namespacesAtOnce)
	for _, want := range wants {
		calls.Go(func() error {
			call, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			_, err := askSnowflake(call, o, pb.SnowflakeClient.PutNamespace, want)
			if err != nil {
				return fmt.Errorf("line %d, others may be added: run it again: %w", lines[want.GetName()], err)
			}
			return nil
		})
	}
	return fileResult{Lines: len(entries), Created: len(wants), Unchanged: len(entries) - len(wants)}, calls.Wait()
}

// checkNew returns what is wrong with a namespace that should be recorded like that. old is what is recorded;
// nil if nothing is.
func checkNew(want *pb.SnowflakePutNamespaceRequest, old *pb.SnowflakeNamespace) error {
	if err := checkNamespace(want); err != nil {
		return err
	}
	if want.GetLayout() == "" {
		return fmt.Errorf("%w: no layout=", seq.ErrBadArgument)
	}
	if old == nil {
		return nil
	}
	l, err := parseLayout("layout", want.GetLayout())
	if err != nil {
		return err
	}
	new, was := describe(l), newLayoutRow(old.GetLayout(), time.Now())
	rollback := cmp.Or(want.GetRollback(), new.GetRollback())
	if policy, wait, err := snowflake.ParseRollback(rollback); err == nil && policy == snowflake.RollbackWait {
		rollback = policy.String() + ":" + wait.String()
	}
	switch {
	case old.GetRetiredUnixMs() != 0:
		return fmt.Errorf("%w (seqctl namespace retire %s --undo brings it back)", seq.ErrRetired, want.GetName())
	case newLayoutRow(new, time.Now()).fields() != was.fields(), want.GetAlias() != old.GetAlias(),
		cmp.Or(want.GetOverflow(), new.GetOverflow()) != was.Overflow, rollback != was.Rollback:
		return fmt.Errorf("%w: %q is recorded otherwise (seqctl namespace show tells how, add with --if-version changes it)", seq.ErrConflict, want.GetName())
	}
	return nil
}
