package ids

import (
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// tagRow is a tag and its limits.
type tagRow struct {
	Tag     string `json:"tag"`
	Section uint32 `json:"section"` // whose owner serves it
	MinStep uint64 `json:"min_step"`
	MaxStep uint64 `json:"max_step"`
	Start   uint64 `json:"start"`             // no number below it is handed out
	Retired string `json:"retired,omitempty"` // when; empty: it is in use
}

func newTagRow(p *pb.SegmentTag) tagRow {
	return tagRow{p.GetTag(), p.GetSection(), p.GetMinStep(), p.GetMaxStep(), p.GetStart(), retiredText(p.GetRetiredUnixMs())}
}

func tagTable(rows ...tagRow) *ui.Table {
	t := ui.NewTable("tag", "section", "min step", "max step", "start", "state")
	for _, r := range rows {
		t.Row(r.Tag, digits(r.Section), r.MinStep, r.MaxStep, digits(r.Start), stateCell(r.Retired))
	}
	return t
}
