package ids

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// namespaceRow is what add and show print, and a line of list.
type namespaceRow struct {
	Name    string `json:"name"`
	Alias   uint32 `json:"alias"`             // 0: none
	Version uint64 `json:"version"`           // counts its changes; 0: offered by default and never used so far
	Retired string `json:"retired,omitempty"` // when; empty: it is in use
	layoutRow
}

func newNamespaceRow(p *pb.SnowflakeNamespace) namespaceRow {
	return namespaceRow{p.GetName(), p.GetAlias(), p.GetVersion(), retiredText(p.GetRetiredUnixMs()), newLayoutRow(p.GetLayout(), time.Now())}
}

// retiredText is the moment of a retirement; empty for none.
func retiredText(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return time.UnixMilli(unixMS).UTC().Format(time.RFC3339)
}

// stateCell is the state of a namespace or tag for people.
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
			alias = digits(r.Alias)
		}
		if r.Version != 0 {
			version = digits(r.Version)
		}
		t.Row(r.Name, alias, version, stateCell(r.Retired), r.RunsOut, r.leftCell(), r.Overflow, r.Rollback, r.Layout)
	}
	return t
}
