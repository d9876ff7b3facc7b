package ids

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// namespaceRow is the output of add and show, and a line of list.
type namespaceRow struct {
	Name    string `json:"name"`
	Alias   uint32 `json:"alias"`             // zero means no alias
	Version uint64 `json:"version"`           // counts its changes; zero for a default that was never used
	Retired string `json:"retired,omitempty"` // time; empty while it is in use
	effect
	layoutRow
}

func newNamespaceRow(p *pb.SnowflakeNamespace) namespaceRow {
	return namespaceRow{p.GetName(), p.GetAlias(), p.GetVersion(), retiredText(p.GetRetiredUnixMs()),
		effect{p.GetInEffectInMs(), p.GetWindowsUntilUnixMs()}, newLayoutRow(p.GetLayout(), time.Now())}
}

// retiredText returns the moment of a retirement; empty for none.
func retiredText(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return time.UnixMilli(unixMS).UTC().Format(time.RFC3339)
}

// stateCell returns the state of a namespace or tag for people.
func stateCell(retired string) string {
	if retired == "" {
		return "in use"
	}
	return "retired " + retired
}

func namespaceTable(rows ...namespaceRow) *ui.Table {
	t := ui.NewTable("namespace", "alias", "version", "state", "runs out", "left", "overflow", "rollback", "layout")
	for _, r := range rows {
		alias, version := "-", "offered"
		if r.Alias != 0 {
			alias = ctl.Digits(r.Alias)
		}
		if r.Version != 0 {
			version = ctl.Digits(r.Version)
		}
		t.Row(r.Name, alias, version, stateCell(r.Retired), r.RunsOut, r.leftCell(), r.Overflow, r.Rollback, r.Layout)
	}
	return t
}

func namespaceAddCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SnowflakePutNamespaceRequest{}
	cmd := &cobra.Command{
		Use:   "add NAME | --file F",
		Short: "record a namespace; with --if-version, change one",
		Long: `add records a namespace: a name of a-z, then up to 63 of a-z 0-9 . _ -, and a layout.
With --if-version, the version that show tells, it changes the one that is recorded: what
no flag names stays. A change after which IDs could be repeated is refused, and so is a layout
that has ended.`,
		Example: "  seqctl namespace add orders --layout leaf --alias 9\n" +
			"  seqctl namespace add orders --if-version 1 --overflow borrow\n" +
			"  seqctl namespace add --file namespaces.txt",
		Args: ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&want.Layout, "layout", "", "preset, or a layout's `text`; required for a new namespace")
	_ = cmd.RegisterFlagCompletionFunc("layout", ctl.OneOf(snowflake.PresetNames()...)) // it is there
	cmd.Flags().Uint32Var(&want.Alias, "alias", 0, "`number` that callers may say in place of the name; it never changes; empty: none")
	cmd.Flags().StringVar(&want.Overflow, "overflow", "", "wait, refuse or borrow when a tick is used up; empty: as the layout says")
	cmd.Flags().StringVar(&want.Rollback, "rollback", "", "refuse, borrow or wait:DURATION when a clock moved back; empty: as the layout says")
	cmd.Flags().Uint64Var(&want.Version, "if-version", 0, "change it if this is its `version`; 0: it is new")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		want.Name = args[0]
		if err := checkNamespace(want); err != nil {
			return err
		}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.PutNamespace, want)
		if errors.Is(err, seq.ErrConflict) {
			return fmt.Errorf("%w (seqctl namespace show %s tells its version, --if-version changes that one)", err, want.GetName())
		}
		if errors.Is(err, seq.ErrRetired) {
			return fmt.Errorf("%w (seqctl namespace retire %s --undo brings it back)", err, want.GetName())
		}
		if err != nil {
			return err
		}
		r := newNamespaceRow(reply)
		if err := ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) }); err != nil || format != ui.FormatTable {
			return err
		}
		r.note(stdout)
		if end := time.UnixMilli(reply.GetLayout().GetExhaustedUnixMs()); time.Until(end) <= snowflake.ExhaustionWarning {
			fmt.Fprintf(stdout, "warning: its layout ends on %s, in %d days\n", end.UTC().Format(time.DateOnly), time.Until(end)/(24*time.Hour))
		}
		return nil
	})
	addFlag(cmd, o, "a name, layout=, and any of alias=, overflow= and rollback=", addNamespaces)
	return cmd
}

// checkNamespace finds what is wrong whatever the cluster has: daemon.ErrUsage.
func checkNamespace(want *pb.SnowflakePutNamespaceRequest) error {
	if want.GetLayout() != "" {
		if _, err := parseLayout("--layout", want.GetLayout()); err != nil {
			return err
		}
	}
	if want.GetOverflow() != "" {
		if _, err := snowflake.ParseOverflow(want.GetOverflow()); err != nil {
			return badLayout("--overflow", err)
		}
	}
	if want.GetRollback() != "" {
		if _, _, err := snowflake.ParseRollback(want.GetRollback()); err != nil {
			return badLayout("--rollback", err)
		}
	}
	if want.GetName() == "" {
		return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
	}
	return nil
}

// namespaceList is the output of list.
type namespaceList struct {
	Namespaces []namespaceRow `json:"namespaces"`
	// Over all namespaces; an id belongs to the name that used it first.
	Datacenters []datacenterRow `json:"datacenters"`
}

type datacenterRow struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"` // empty for nodes without a datacenter name
}

func namespaceListCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the namespaces, and the datacenters with their ids",
		Args:  ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{})
		if err != nil {
			return err
		}
		r := namespaceList{[]namespaceRow{}, []datacenterRow{}}
		for _, ns := range reply.GetNamespaces() {
			r.Namespaces = append(r.Namespaces, newNamespaceRow(ns))
		}
		for _, dc := range reply.GetDatacenters() {
			r.Datacenters = append(r.Datacenters, datacenterRow{dc.GetId(), dc.GetName()})
		}
		return r.print(stdout, format)
	})
	return cmd
}

func (r namespaceList) print(w io.Writer, format ui.Format) error {
	if err := ui.Print(w, format, r, func() *ui.Table { return namespaceTable(r.Namespaces...) }); err != nil || format != ui.FormatTable || len(r.Datacenters) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t := ui.NewTable("datacenter", "name")
	for _, dc := range r.Datacenters {
		t.Row(ctl.Digits(dc.ID), cmp.Or(dc.Name, "-"))
	}
	return t.Write(w)
}

func namespaceShowCommand() *cobra.Command {
	o := &ctl.Options{}
	cmd := &cobra.Command{
		Use:               "show NAME",
		ValidArgsFunction: completer(o, namespaces),
		Example:           "  seqctl namespace show orders",
		Short:             "show one namespace, by name or alias: its layout, policies and version",
		Args:              ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if args[0] == "" { // would mean all
			return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
		}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{Namespace: args[0]})
		if err != nil {
			return err
		}
		if len(reply.GetNamespaces()) != 1 {
			return fmt.Errorf("%w: %q: got %d", seq.ErrUnknownNamespace, args[0], len(reply.GetNamespaces()))
		}
		r := newNamespaceRow(reply.GetNamespaces()[0])
		return ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) })
	})
	return cmd
}

func namespaceRetireCommand() *cobra.Command {
	o, want := &ctl.Options{}, &pb.SnowflakeRetireNamespaceRequest{}
	cmd := &cobra.Command{
		Use:               "retire NAME",
		ValidArgsFunction: completer(o, namespaces),
		Short:             "have a namespace hand out nothing more; --undo brings it back",
		Long: `retire has a namespace, by name or alias, hand out no more IDs: callers get RETIRED at every node once it is
answered. A window that a client has already been given goes on to its end, which the answer says. IDs are still decoded. What
is retired is left out of status, and neither add nor a config file brings it back: --undo does, and
repeats no ID, since the marks of its worker ids stay. Retire once every node runs a version that knows how to.`,
		Example: "  seqctl namespace retire orders\n  seqctl namespace retire orders --undo",
		Args:    ctl.RangeArgs(1, 1),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().BoolVar(&want.Undo, "undo", false, "have it hand out IDs again")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if want.Namespace = args[0]; want.Namespace == "" {
			return daemon.Usage(fmt.Errorf("%w: empty namespace name", seq.ErrBadArgument))
		}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.RetireNamespace, want)
		if err != nil {
			return err
		}
		r := newNamespaceRow(reply)
		if err := ui.Print(stdout, format, r, func() *ui.Table { return namespaceTable(r) }); err != nil || format != ui.FormatTable {
			return err
		}
		r.note(stdout)
		return nil
	})
	return cmd
}
