package router

import (
	"net/http"
	"strconv"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// This file has Leaf's pages about its tags, whose JSON is our own. Every 64-bit number
// stands there twice, since they are read in browsers.

// millisUTC is RFC 3339 with milliseconds.
const millisUTC = "2006-01-02T15:04:05.000Z07:00"

func str[T ~uint64](v T) string { return strconv.FormatUint(uint64(v), 10) }

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
		out.Retired = time.UnixMilli(t.GetRetiredUnixMs()).UTC().Format(millisUTC)
	}
	return out
}

// db is what Leaf reads from its table: all tags.
func (f *front) db(r *http.Request) (any, error) {
	if _, err := query(r, nil); err != nil {
		return nil, err
	}
	got, err := f.list(r.Context(), &pb.SegmentListRequest{})
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

// tagState is the state of a tag in an answer.
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
	if _, err := query(r, nil); err != nil {
		return nil, err
	}
	all, err := f.status(r.Context(), &pb.SegmentStatusRequest{})
	if err != nil {
		return nil, err
	}
	tags := make([]tagState, len(all.GetTags()))
	for i, st := range all.GetTags() {
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
