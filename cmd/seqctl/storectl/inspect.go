package storectl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// offline are the flags of the verbs that read files.
type offline struct{ ctl.Options }

func (o *offline) addTo(cmd *cobra.Command) {
	o.AddLocalTo(cmd)
}

// open reads a backup, or the database in the data directory of a store that does not run,
// which has no signature.
func open(path string, key backup.Key) (backup.Manifest, []quorum.RegisterState, backup.Signature, error) {
	info, err := os.Stat(path)
	if err != nil {
		return backup.Manifest{}, nil, "", err
	}
	if !info.IsDir() {
		return key.Load(path)
	}
	m, states, err := openDatabase(path)
	return m, states, "", err
}

func openDatabase(path string) (backup.Manifest, []quorum.RegisterState, error) {
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
		Registers: len(states), LeaseBound: meta.LeaseBound, Floors: meta.Floors.Floors, Required: meta.Required}, states, nil
}

func inspectCommand() *cobra.Command {
	o := &offline{}
	var sign signing
	cmd := &cobra.Command{
		Use:     "inspect FILE|DIR",
		Short:   "show what a backup, or the database of a store that does not run, is of",
		Example: "  seqctl store inspect /backup/seqsvr-2026-01-31",
		Args:    ctl.ExactArgs("FILE|DIR"),
	}
	o.addTo(cmd)
	sign.addTo(cmd, "say whether a backup was made with it; empty: only whether it is signed")
	cmd.RunE = o.Verb(func(_ context.Context, format ui.Format, args []string, stdout io.Writer) error {
		key, err := sign.key()
		if err != nil {
			return err
		}
		m, states, sig, err := open(args[0], key)
		if err != nil {
			return err
		}
		return contents{Manifest: m, Signature: sig}.print(stdout, format, states)
	})
	return cmd
}

// contents describes a backup or database.
type contents struct {
	backup.Manifest
	Signature backup.Signature `json:"signature,omitempty"` // empty for a database
	Kinds     map[string]int   `json:"kinds,omitempty"`     // registers of each kind
	Highest   uint64           `json:"highest_section,omitempty"`
	Exact     *exactContents   `json:"exact,omitempty"`    // nil if there is no exact space
	Spent     []string         `json:"spent,omitempty"`    // of a restore, the names that have no more numbers in the new era
	Set       *backup.OfSet    `json:"set,omitempty"`      // nil if it cannot be read; check says why
	Restored  *asRestored      `json:"restored,omitempty"` // nil if this is no restore
}

// asRestored holds what the flags of a restore said about the Sets.
type asRestored struct {
	WasSet bool `json:"was_set"`
}

func asked(r backup.Restore) *asRestored { return &asRestored{r.WasSet} }

// setOf returns which Set the states are of; nil if they do not say so soundly.
func setOf(states []quorum.RegisterState) *backup.OfSet {
	of, err := backup.SetOf(states)
	if err != nil || states == nil {
		return nil
	}
	return &of
}

// printSet prints the Set of a backup, and after a restore the next step.
func printSet(w io.Writer, of *backup.OfSet, restored *asRestored) {
	if of == nil {
		return
	}
	fmt.Fprintf(w, "of %v\n", of)
	switch {
	case restored == nil || !of.Alone:
	case restored.WasSet:
		fmt.Fprintf(w, "restored as Set %s, the root: it serves nothing before seqctl set add of each other Set, and then seqctl set settle --set %s\n", sets.RootName, sets.RootName)
	default:
		fmt.Fprintln(w, "WARNING: the backup is of a cluster that is alone (no Set). If Sets were added since, its numbers repeat: restore it with --was-set instead, and settle it")
	}
}

// exactContents counts the contents of exact spaces' sections.
type exactContents struct {
	Sections int       `json:"sections"`
	Records  int       `json:"with_records"` // sections that have some
	UIDs     int       `json:"uids"`
	IDs      int       `json:"ids"`    // of requests
	Latest   time.Time `json:"latest"` // time of the last record of all
}

func exactOf(m seq.Mapping, states []quorum.RegisterState) *exactContents {
	if !m.HasExact() || states == nil {
		return nil
	}
	out := &exactContents{}
	for _, st := range states {
		id, section := st.Register.Section()
		if !section || !m.IsExact(id) {
			continue
		}
		out.Sections++
		s, err := acceptor.CopyOf(st, m.WindowOf(id))
		if err != nil || s.At().Index == 0 { // check says what is wrong with it
			continue
		}
		out.Records, out.UIDs, out.IDs = out.Records+1, out.UIDs+s.UIDs(), out.IDs+s.IDs()
		if at := time.UnixMilli(s.Time()).UTC(); at.After(out.Latest) {
			out.Latest = at
		}
	}
	return out
}

// print writes what the manifest says, and counts the states.
func (c contents) print(w io.Writer, format ui.Format, states []quorum.RegisterState) error {
	c.Kinds = map[string]int{}
	for _, st := range states {
		c.Kinds[strings.Fields(st.Register.String())[0]]++
		if st.Register.Kind() == seq.KindSection {
			c.Highest = max(c.Highest, st.Max)
		}
	}
	c.Exact, c.Set = exactOf(c.Mapping, states), setOf(states)
	if format != ui.FormatTable {
		return ui.Print(w, format, c, nil)
	}
	m := c.Manifest
	fmt.Fprintf(w, "cluster %s, era %d, member list %d, %d registers in %d sections, from %s\n",
		m.Cluster, m.Era, m.Members.Version, m.Registers, m.Mapping.Sections(), strings.Join(m.Sources, ", "))
	if !m.Taken.IsZero() {
		fmt.Fprintf(w, "taken %s\n", m.Taken.Format("2006-01-02 15:04:05 UTC"))
	}
	printSignature(w, c.Signature)
	if states == nil {
		return nil
	}
	t := ui.NewTable("kind", "registers")
	for _, kind := range seq.Kinds() {
		t.Row(kind.Name, c.Kinds[kind.Name])
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if e := c.Exact; e != nil {
		fmt.Fprintf(w, "exact spaces: %d sections, %d with records, %d UIDs, %d ids of requests", e.Sections, e.Records, e.UIDs, e.IDs)
		if e.Records > 0 {
			fmt.Fprintf(w, ", last record %s", e.Latest.Format("2006-01-02 15:04:05 UTC"))
		}
		fmt.Fprintln(w)
	}
	printSpent(w, c.Spent)
	printSet(w, c.Set, c.Restored)
	return nil
}

// printSignature says nothing of a database.
func printSignature(w io.Writer, sig backup.Signature) {
	if sig != "" {
		fmt.Fprintf(w, "signature: %s\n", sig)
	}
}
