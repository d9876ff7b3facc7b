package storectl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// offline are the flags of the verbs that read files.
type offline struct{ ctl.Options }

func (o *offline) addTo(cmd *cobra.Command) {
	o.Options.AddTo(cmd, changeTimeout)
	for _, unused := range []string{"addr", "timeout"} {
		_ = cmd.Flags().MarkHidden(unused) // it is there
	}
}

// open reads a backup, or the database in the data directory of a store that does not run.
func open(path string) (backup.Manifest, []quorum.RegisterState, error) {
	info, err := os.Stat(path)
	if err != nil {
		return backup.Manifest{}, nil, err
	}
	if !info.IsDir() {
		return backup.Load(path)
	}
	meta, registers, err := disk.Inspect(path)
	if err != nil {
		return backup.Manifest{}, nil, err
	}
	states := make([]quorum.RegisterState, 0, len(registers))
	for r, st := range registers {
		states = append(states, st.Of(r))
	}
	slices.SortFunc(states, func(a, b quorum.RegisterState) int { return cmp.Compare(a.Register, b.Register) })
	list := quorum.MemberList{Version: meta.Members.Version, R: cmp.Or(meta.Members.R, meta.R), W: cmp.Or(meta.Members.W, meta.W), Members: meta.Members.List}
	return backup.Manifest{Cluster: meta.Cluster, Era: meta.Era, Members: list, Mapping: meta.Mapping, Sources: []string{meta.Name},
		Registers: len(states), LeaseBound: meta.LeaseBound, Floors: meta.Floors.Floors}, states, nil
}

func inspectCommand() *cobra.Command {
	o := &offline{}
	cmd := &cobra.Command{
		Use:     "inspect FILE|DIR",
		Short:   "show what a backup, or the database of a store that does not run, is of",
		Example: "  seqctl store inspect /backup/seqsvr-2026-01-31",
		Args:    ctl.ExactArgs("FILE|DIR"),
	}
	o.addTo(cmd)
	cmd.RunE = o.Verb(func(_ context.Context, format ui.Format, args []string, stdout io.Writer) error {
		m, states, err := open(args[0])
		if err != nil {
			return err
		}
		return printManifest(stdout, format, m, states)
	})
	return cmd
}

// contents is what is in a backup or database.
type contents struct {
	backup.Manifest
	Kinds   map[string]int `json:"kinds,omitempty"` // registers of each kind
	Highest uint64         `json:"highest_section,omitempty"`
	Spent   []string       `json:"spent,omitempty"` // of a restore: what hands out nothing in the new era
}

func printManifest(w io.Writer, format ui.Format, m backup.Manifest, states []quorum.RegisterState) error {
	return printRestored(w, format, m, states, nil)
}

// printRestored is printManifest with what came to its end in the restore.
func printRestored(w io.Writer, format ui.Format, m backup.Manifest, states []quorum.RegisterState, spent []string) error {
	c := contents{Manifest: m, Kinds: map[string]int{}, Spent: spent}
	for _, st := range states {
		c.Kinds[strings.Fields(st.Register.String())[0]]++
		if st.Register.Kind() == seq.KindSection {
			c.Highest = max(c.Highest, st.Max)
		}
	}
	if format != ui.FormatTable {
		return ui.Print(w, format, c, nil)
	}
	fmt.Fprintf(w, "cluster %s, era %d, member list %d, %d registers in %d sections, from %s\n",
		m.Cluster, m.Era, m.Members.Version, m.Registers, m.Mapping.Sections(), strings.Join(m.Sources, ", "))
	if !m.Taken.IsZero() {
		fmt.Fprintf(w, "taken %s\n", m.Taken.Format("2006-01-02 15:04:05 UTC"))
	}
	if states == nil {
		return nil
	}
	t := ui.NewTable("kind", "registers")
	for _, kind := range []string{"section", "tag", "worker", "document", "lease"} {
		t.Row(kind, c.Kinds[kind])
	}
	if err := t.Write(w); err != nil {
		return err
	}
	printSpent(w, spent)
	return nil
}
