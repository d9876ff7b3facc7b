package router

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// idRequest names one key: by uid or by string.
type idRequest struct {
	UID   *number `json:"uid"`
	Key   *string `json:"key"`
	Space string  `json:"space"`
}

func (id idRequest) resolve() (client.Key, error) {
	out := client.Key{Space: id.Space}
	switch {
	case id.UID != nil && id.Key != nil:
		return out, badArgument("uid and key are both set, expected one")
	case id.UID != nil:
		out.UID = seq.UID(*id.UID)
	case id.Key != nil:
		if err := seq.CheckKey("key", *id.Key); err != nil {
			return out, err
		}
		out.UID = seq.HashKey(*id.Key)
	default:
		return out, badArgument("neither uid nor key is set")
	}
	if out.Space == "" {
		out.Space = seq.DefaultSpace
	}
	return out, nil
}

// named is the key in an answer.
type named struct {
	Space  string `json:"space"`
	UID    uint64 `json:"uid"`
	UIDStr string `json:"uid_str"`
}

func nameOf(key client.Key) named {
	return named{key.Space, uint64(key.UID), str(key.UID)}
}

// taken is the numbers in an answer.
type taken struct {
	First     uint64 `json:"first"`
	FirstStr  string `json:"first_str"`
	Last      uint64 `json:"last"` // inclusive
	LastStr   string `json:"last_str"`
	Unordered bool   `json:"unordered"`
}

func takenOf(r client.Range) taken {
	return taken{uint64(r.First), str(r.First), uint64(r.Last), str(r.Last), r.Unordered}
}

func str[T ~uint64](v T) string { return strconv.FormatUint(uint64(v), 10) }

func (f *front) next(r *http.Request) (any, error) {
	var req struct {
		idRequest
		Count *number `json:"count"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	key, err := req.resolve()
	if err != nil {
		return nil, err
	}
	count := uint64(1)
	if req.Count != nil {
		count = uint64(*req.Count)
	}
	if err := seq.CheckCount("count", count); err != nil {
		return nil, err
	}
	got, err := f.sdk.Take(r.Context(), key, uint32(count))
	if err != nil {
		return nil, err
	}
	return struct {
		named
		taken
	}{nameOf(key), takenOf(got)}, nil
}

func (f *front) batch(r *http.Request) (any, error) {
	var req struct {
		Space  string   `json:"space"`
		UIDs   []number `json:"uids"`
		Keys   []string `json:"keys"`
		Counts []number `json:"counts"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	if err := seq.CheckKeys("the batch", len(req.UIDs)+len(req.Keys)); err != nil {
		return nil, err
	}
	raw := make([]uint64, len(req.UIDs))
	for i, uid := range req.UIDs {
		raw[i] = uint64(uid)
	}
	var counts []uint32
	for _, n := range req.Counts {
		counts = append(counts, uint32(min(uint64(n), seq.MaxCount+1))) // checked right below
	}
	uids, err := seq.Batch{UIDs: raw, Keys: req.Keys, Counts: counts}.Resolve(0)
	if err != nil {
		return nil, err
	}
	if err := f.inWork.Enter(len(uids)); err != nil {
		return nil, err
	}
	defer f.inWork.Leave(len(uids))
	got, err := f.sdk.NextBatch(r.Context(), req.Space, uids, counts)
	if err != nil {
		return nil, err
	}
	type result struct {
		UID    uint64 `json:"uid"`
		UIDStr string `json:"uid_str"`
		*taken
		Error *fault `json:"error,omitempty"`
	}
	results := make([]result, len(got))
	for i, one := range got {
		results[i] = result{UID: uint64(uids[i]), UIDStr: str(uids[i])}
		if one.Err != nil {
			_, results[i].Error = faultOf(one.Err)
			continue
		}
		numbers := takenOf(one)
		results[i].taken = &numbers
	}
	space := req.Space
	if space == "" {
		space = seq.DefaultSpace
	}
	return struct {
		Space   string   `json:"space"`
		Results []result `json:"results"`
	}{space, results}, nil
}

func (f *front) current(r *http.Request) (any, error) {
	id, err := idFromQuery(r)
	if err != nil {
		return nil, err
	}
	key, err := id.resolve()
	if err != nil {
		return nil, err
	}
	values, err := f.sdk.Current(r.Context(), key.Space, []seq.UID{key.UID})
	if err == nil {
		err = values[0].Err
	}
	if err != nil {
		return nil, err
	}
	v := values[0]
	out := struct {
		named
		Seq       uint64 `json:"seq"`
		SeqStr    string `json:"seq_str"`
		Exact     bool   `json:"exact"`                     // false: seq may be above the last number handed out
		LastTaken *int64 `json:"last_taken_unix,omitempty"` // seconds; absent: not known
	}{named: nameOf(key), Seq: uint64(v.Seq), SeqStr: str(v.Seq), Exact: !v.UpperBound}
	if !v.LastTaken.IsZero() {
		unix := v.LastTaken.Unix()
		out.LastTaken = &unix
	}
	return out, nil
}

func idFromQuery(r *http.Request) (idRequest, error) {
	id := idRequest{}
	for name, values := range r.URL.Query() {
		if len(values) != 1 {
			return id, badArgument("query parameter " + strconv.Quote(name) + " is set more than once; POST /v1/batch takes many keys")
		}
		switch name {
		case "uid":
			uid := new(number)
			if err := uid.parse(values[0]); err != nil {
				return id, badArgument("uid: " + err.Error())
			}
			id.UID = uid
		case "key":
			id.Key = &values[0]
		case "space":
			id.Space = values[0]
		default:
			return id, badArgument("unknown query parameter " + strconv.Quote(name) + ", expected uid, key or space")
		}
	}
	return id, nil
}

func (f *front) raise(r *http.Request) (any, error) {
	var req struct {
		idRequest
		AtLeast *number `json:"at_least"`
		Force   bool    `json:"force"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	key, err := req.resolve()
	if err != nil {
		return nil, err
	}
	if req.AtLeast == nil {
		return nil, badArgument("at_least is missing")
	}
	if err := seq.CheckFloor("at_least", uint64(*req.AtLeast)); err != nil {
		return nil, err
	}
	value, err := f.sdk.Raise(r.Context(), key, seq.Seq(*req.AtLeast), map[bool][]client.RaiseOption{true: {client.Forced}}[req.Force]...)
	if err != nil {
		return nil, err
	}
	return struct {
		named
		Value    uint64 `json:"value"`
		ValueStr string `json:"value_str"`
	}{nameOf(key), uint64(value), str(value)}, nil
}

// state is the answer of the probes.
type state struct {
	Status        string          `json:"status"`
	RoutesVersion json.RawMessage `json:"routes_version,omitempty"`
}

// live says that the process answers.
func (f *front) live(*http.Request) (any, error) { return state{Status: "ok"}, nil }

// ready answers as the admin listener does.
func (f *front) ready(*http.Request) (any, error) {
	if err := f.isReady(); err != nil {
		return nil, err
	}
	return state{"ok", json.RawMessage(strconv.FormatUint(f.sdk.Routes().Version, 10))}, nil
}
