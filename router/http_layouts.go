package router

import (
	"net/http"
	"strconv"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// layoutInfo is a layout in an answer.
type layoutInfo struct {
	Name             string  `json:"name,omitempty"` // preset; absent if it is none
	Text             string  `json:"text"`
	Epoch            string  `json:"epoch"`
	EpochUnixMs      int64   `json:"epoch_unix_ms"`
	EpochUnixMsStr   string  `json:"epoch_unix_ms_str"`
	UnitMs           int64   `json:"unit_ms"`
	UnitMsStr        string  `json:"unit_ms_str"`
	RunsOut          string  `json:"runs_out"` // first moment without a tick
	RunsOutUnixMs    int64   `json:"runs_out_unix_ms"`
	RunsOutUnixMsStr string  `json:"runs_out_unix_ms_str"`
	Exhausted        bool    `json:"exhausted"` // that moment is over
	MaxDatacenter    *uint64 `json:"max_datacenter,omitempty"`
	MaxDatacenterStr string  `json:"max_datacenter_str,omitempty"`
	MaxWorker        uint64  `json:"max_worker"`
	MaxWorkerStr     string  `json:"max_worker_str"`
	MaxSequence      uint64  `json:"max_sequence"`
	MaxSequenceStr   string  `json:"max_sequence_str"`
	Overflow         string  `json:"overflow"`
	Rollback         string  `json:"rollback"`
}

func layoutInfoOf(l *pb.SnowflakeLayout) layoutInfo {
	signed := func(v int64) string { return strconv.FormatInt(v, 10) }
	out := layoutInfo{
		Name: l.GetName(), Text: l.GetText(),
		Epoch: timeText(l.GetEpochUnixMs()), EpochUnixMs: l.GetEpochUnixMs(), EpochUnixMsStr: signed(l.GetEpochUnixMs()),
		UnitMs: l.GetUnitMs(), UnitMsStr: signed(l.GetUnitMs()),
		RunsOut: timeText(l.GetExhaustedUnixMs()), RunsOutUnixMs: l.GetExhaustedUnixMs(), RunsOutUnixMsStr: signed(l.GetExhaustedUnixMs()),
		Exhausted: l.GetExhausted(), MaxWorker: l.GetMaxWorker(), MaxWorkerStr: str(l.GetMaxWorker()),
		MaxSequence: l.GetMaxSequence(), MaxSequenceStr: str(l.GetMaxSequence()), Overflow: l.GetOverflow(), Rollback: l.GetRollback(),
	}
	if l.GetHasDatacenter() {
		out.MaxDatacenter, out.MaxDatacenterStr = &l.MaxDatacenter, str(l.GetMaxDatacenter())
	}
	return out
}

func (f *front) layouts(r *http.Request) (any, error) {
	q, err := query(r, "layout")
	if err != nil {
		return nil, err
	}
	got, err := f.ids.Layouts(r.Context(), &pb.SnowflakeLayoutsRequest{Layout: q["layout"]})
	if err != nil {
		return nil, err
	}
	out := struct {
		Layouts []layoutInfo `json:"layouts"`
	}{make([]layoutInfo, len(got.GetLayouts()))}
	for i, l := range got.GetLayouts() {
		out.Layouts[i] = layoutInfoOf(l)
	}
	return out, nil
}
