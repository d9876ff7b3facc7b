package ids

import (
	"time"

	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// namespaceRow is what add and show print, and a line of list.
type namespaceRow struct {
	Name    string `json:"name"`
	Alias   uint32 `json:"alias"`   // 0: none
	Version uint64 `json:"version"` // counts its changes; 0: offered by default and never used so far
	layoutRow
}

func newNamespaceRow(p *pb.SnowflakeNamespace) namespaceRow {
	return namespaceRow{p.GetName(), p.GetAlias(), p.GetVersion(), newLayoutRow(p.GetLayout(), time.Now())}
}

func namespaceTable(rows ...namespaceRow) *ui.Table {
	t := ui.NewTable("namespace", "alias", "version", "runs out", "left", "overflow", "rollback", "layout")
	for _, r := range rows {
		alias, version := "-", "offered"
		if r.Alias != 0 {
			alias = digits(r.Alias)
		}
		if r.Version != 0 {
			version = digits(r.Version)
		}
		t.Row(r.Name, alias, version, r.RunsOut, r.leftCell(), r.Overflow, r.Rollback, r.Layout)
	}
	return t
}
