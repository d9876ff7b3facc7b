package router

import (
	"net/http"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func (f *front) takeSegment(r *http.Request) (any, error) {
	var req struct {
		Tag   string  `json:"tag"`
		Count *number `json:"count"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	count := uint64(1)
	if req.Count != nil {
		count = uint64(*req.Count)
	}
	if err := seq.CheckCount("count", count); err != nil {
		return nil, err
	}
	first, last, err := f.sdk.TakeSegment(r.Context(), req.Tag, uint32(count))
	if err != nil {
		return nil, err
	}
	return struct {
		Tag      string `json:"tag"`
		First    uint64 `json:"first"`
		FirstStr string `json:"first_str"`
		Last     uint64 `json:"last"` // inclusive
		LastStr  string `json:"last_str"`
	}{req.Tag, uint64(first), str(first), uint64(last), str(last)}, nil
}

// tagInfo is a tag and its limits in an answer.
type tagInfo struct {
	Tag        string `json:"tag"`
	Section    uint32 `json:"section"`
	MinStep    uint64 `json:"min_step"`
	MinStepStr string `json:"min_step_str"`
	MaxStep    uint64 `json:"max_step"`
	MaxStepStr string `json:"max_step_str"`
	Start      uint64 `json:"start"`
	StartStr   string `json:"start_str"`
	Retired    string `json:"retired,omitempty"` // when it was retired; absent: it is in use
}

func tagInfoOf(t *pb.SegmentTag) tagInfo {
	out := tagInfo{
		Tag: t.GetTag(), Section: t.GetSection(), MinStep: t.GetMinStep(), MinStepStr: str(t.GetMinStep()),
		MaxStep: t.GetMaxStep(), MaxStepStr: str(t.GetMaxStep()), Start: t.GetStart(), StartStr: str(t.GetStart()),
	}
	if t.GetRetiredUnixMs() != 0 {
		out.Retired = timeText(t.GetRetiredUnixMs())
	}
	return out
}

// db is what Leaf reads from its table: all tags.
func (f *front) db(r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	got, err := f.segs.List(r.Context(), &pb.SegmentListRequest{})
	if err != nil {
		return nil, err
	}
	tags := make([]tagInfo, len(got.GetTags()))
	for i, t := range got.GetTags() {
		tags[i] = tagInfoOf(t)
	}
	return struct {
		Tags []tagInfo `json:"tags"`
	}{tags}, nil
}

// bufferInfo is a reserved segment in an answer.
type bufferInfo struct {
	First    uint64 `json:"first"`
	FirstStr string `json:"first_str"`
	Last     uint64 `json:"last"` // inclusive
	LastStr  string `json:"last_str"`
	Left     uint64 `json:"left"` // not handed out yet
	LeftStr  string `json:"left_str"`
}

// tagState is how a tag stands in an answer.
type tagState struct {
	tagInfo
	State      string       `json:"state"`
	Leased     bool         `json:"leased"`
	Current    uint64       `json:"current"`
	CurrentStr string       `json:"current_str"`
	Max        uint64       `json:"max"`
	MaxStr     string       `json:"max_str"`
	Step       uint64       `json:"step"`
	StepStr    string       `json:"step_str"`
	Loading    bool         `json:"loading"`
	Buffers    []bufferInfo `json:"buffers"`
}

// cache is what Leaf has in memory: the tags in use with their buffers.
func (f *front) cache(r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	all, err := tagStatuses(r.Context(), f.sdk)
	if err != nil {
		return nil, err
	}
	tags := make([]tagState, len(all))
	for i, st := range all {
		tags[i] = tagState{
			tagInfo: tagInfoOf(st.GetTag()), State: st.GetState(), Leased: st.GetLeased(), Current: st.GetCurrent(), CurrentStr: str(st.GetCurrent()),
			Max: st.GetMax(), MaxStr: str(st.GetMax()), Step: st.GetStep(), StepStr: str(st.GetStep()), Loading: st.GetLoading(),
			Buffers: []bufferInfo{},
		}
		for _, b := range st.GetBuffers() {
			tags[i].Buffers = append(tags[i].Buffers,
				bufferInfo{b.GetFirst(), str(b.GetFirst()), b.GetLast(), str(b.GetLast()), b.GetLeft(), str(b.GetLeft())})
		}
	}
	return struct {
		Tags []tagState `json:"tags"`
	}{tags}, nil
}
