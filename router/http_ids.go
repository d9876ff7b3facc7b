package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// millisUTC is RFC 3339 with milliseconds.
const millisUTC = "2006-01-02T15:04:05.000Z07:00"

func timeText(unixMs int64) string { return time.UnixMilli(unixMs).UTC().Format(millisUTC) }

// namespace is a name, or a number in digits, which JSON may have as a number.
type namespace string

// UnmarshalJSON takes "orders", "1" and 1.
func (n *namespace) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte{'"'}) {
		return json.Unmarshal(b, (*string)(n))
	}
	var v number
	if v.parse(string(b)) != nil {
		return &json.UnmarshalTypeError{Value: strconv.Quote(string(b[:min(len(b), 40)])), Type: reflect.TypeFor[namespace]()}
	}
	*n = namespace(str(v))
	return nil
}

func (f *front) generate(r *http.Request) (any, error) {
	var req struct {
		Namespace namespace `json:"namespace"`
		Count     *number   `json:"count"`
		Agent     string    `json:"agent"`
		Encoding  string    `json:"encoding"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	count := uint64(1)
	if req.Count != nil {
		count = uint64(*req.Count)
	}
	if err := seq.CheckIDs("count", count); err != nil {
		return nil, err
	}
	form, err := encodingOf(req.Encoding)
	if err != nil {
		return nil, err
	}
	got, err := f.sdk.GenerateAs(r.Context(), req.Agent, string(req.Namespace), uint32(count))
	if err != nil {
		return nil, err
	}
	out := struct {
		Namespace       string         `json:"namespace"`
		Layout          string         `json:"layout"`
		DatacenterID    uint64         `json:"datacenter_id"`
		DatacenterIDStr string         `json:"datacenter_id_str"`
		WorkerID        uint64         `json:"worker_id"`
		WorkerIDStr     string         `json:"worker_id_str"`
		IDs             []snowflake.ID `json:"ids"`
		IDsStr          []string       `json:"ids_str"`
		Texts           []string       `json:"texts,omitempty"` // in the encoding asked for
	}{
		Namespace: got.Namespace, Layout: got.Layout, DatacenterID: uint64(got.Datacenter), DatacenterIDStr: str(got.Datacenter),
		WorkerID: uint64(got.Worker), WorkerIDStr: str(got.Worker), IDs: make([]snowflake.ID, 0, count), IDsStr: make([]string, 0, count),
	}
	for id := range got.All() {
		out.IDs = append(out.IDs, id)
		out.IDsStr = append(out.IDsStr, strconv.FormatInt(int64(id), 10))
		if req.Encoding == "" {
			continue
		}
		text, err := form.Format(id)
		if err != nil {
			return nil, err
		}
		out.Texts = append(out.Texts, text)
	}
	return out, nil
}

// encodingOf reads the name of a text form; "" is decimal.
func encodingOf(name string) (snowflake.Encoding, error) {
	if name == "" {
		return snowflake.Decimal, nil
	}
	e, err := snowflake.ParseEncoding(name)
	if err != nil {
		return e, fmt.Errorf("%w: encoding %.40q, expected decimal, base58, base62, zbase32 or hex", seq.ErrBadArgument, name)
	}
	return e, nil
}

// fields are the parts of an ID in an answer.
type fields struct {
	Datacenter    *uint64 `json:"datacenter,omitempty"` // absent in layouts without that field
	DatacenterStr string  `json:"datacenter_str,omitempty"`
	Worker        uint64  `json:"worker"`
	WorkerStr     string  `json:"worker_str"`
	Sequence      uint64  `json:"sequence"`
	SequenceStr   string  `json:"sequence_str"`
}

// takenApart is an ID and its parts in an answer.
type takenApart struct {
	ID             int64  `json:"id"`
	IDStr          string `json:"id_str"`
	Text           string `json:"text,omitempty"` // in the encoding asked for
	Layout         string `json:"layout"`
	Time           string `json:"time"` // when its tick begins
	UnixMs         int64  `json:"unix_ms"`
	UnixMsStr      string `json:"unix_ms_str"`
	Ticks          uint64 `json:"ticks"` // units since the layout's epoch
	TicksStr       string `json:"ticks_str"`
	Fields         fields `json:"fields"`
	DatacenterName string `json:"datacenter_name,omitempty"` // absent: none is recorded
}

func takenApartOf(d *pb.SnowflakeDecoded, withText bool) takenApart {
	out := takenApart{
		ID: d.GetId(), IDStr: strconv.FormatInt(d.GetId(), 10), Layout: d.GetLayout(), Time: timeText(d.GetUnixMs()),
		UnixMs: d.GetUnixMs(), UnixMsStr: strconv.FormatInt(d.GetUnixMs(), 10), Ticks: d.GetTick(), TicksStr: str(d.GetTick()),
		Fields: fields{
			Worker: d.GetWorkerId(), WorkerStr: str(d.GetWorkerId()), Sequence: d.GetSequence(), SequenceStr: str(d.GetSequence()),
		},
		DatacenterName: d.GetDatacenter(),
	}
	if d.GetHasDatacenter() {
		out.Fields.Datacenter, out.Fields.DatacenterStr = &d.DatacenterId, str(d.GetDatacenterId())
	}
	if withText {
		out.Text = d.GetText()
	}
	return out
}

func (f *front) decode(r *http.Request) (any, error) {
	q, err := query(r, "id", "encoding", "layout", "namespace")
	if err != nil {
		return nil, err
	}
	id, ok := q["id"]
	if !ok {
		return nil, badArgument("id is missing")
	}
	if _, err := encodingOf(q["encoding"]); err != nil {
		return nil, err
	}
	req := &pb.SnowflakeDecodeRequest{
		Id: &pb.SnowflakeDecodeRequest_Text{Text: id}, Encoding: q["encoding"], Layout: q["layout"], Namespace: q["namespace"],
	}
	// A negative number has no text form, and says so more clearly as a number.
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n < 0 && strings.HasPrefix(id, "-") && q["encoding"] == "" {
		req.Id = &pb.SnowflakeDecodeRequest_Number{Number: n}
	}
	got, err := f.ids.Decode(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return takenApartOf(got, false), nil
}

func (f *front) compose(r *http.Request) (any, error) {
	var req struct {
		Layout     string    `json:"layout"`
		Namespace  namespace `json:"namespace"`
		Time       *string   `json:"time"`
		UnixMs     *number   `json:"unix_ms"`
		Ticks      *number   `json:"ticks"`
		Datacenter number    `json:"datacenter"`
		Worker     number    `json:"worker"`
		Sequence   number    `json:"sequence"`
		Encoding   string    `json:"encoding"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	if _, err := encodingOf(req.Encoding); err != nil {
		return nil, err
	}
	ask := &pb.SnowflakeComposeRequest{
		Layout: req.Layout, Namespace: string(req.Namespace), Encoding: req.Encoding,
		DatacenterId: uint64(req.Datacenter), WorkerId: uint64(req.Worker), Sequence: uint64(req.Sequence),
	}
	times := 0
	if req.Time != nil {
		at, err := time.Parse(time.RFC3339Nano, *req.Time)
		if err != nil {
			return nil, badArgument(fmt.Sprintf("time %.40q, expected RFC 3339 as 2022-03-22T07:55:44.532Z", *req.Time))
		}
		ask.Time = &pb.SnowflakeComposeRequest_UnixMs{UnixMs: at.UnixMilli()}
		times++
	}
	if req.UnixMs != nil {
		if *req.UnixMs > math.MaxInt64 {
			return nil, fmt.Errorf("%w: unix_ms is %d, expected at most %d", seq.ErrTimeExhausted, *req.UnixMs, math.MaxInt64)
		}
		ask.Time = &pb.SnowflakeComposeRequest_UnixMs{UnixMs: int64(*req.UnixMs)}
		times++
	}
	if req.Ticks != nil {
		ask.Time = &pb.SnowflakeComposeRequest_Tick{Tick: uint64(*req.Ticks)}
		times++
	}
	if times != 1 {
		return nil, badArgument(fmt.Sprintf("%d of time, unix_ms and ticks are set, expected one", times))
	}
	got, err := f.ids.Compose(r.Context(), ask)
	if err != nil {
		return nil, err
	}
	return takenApartOf(got, req.Encoding != ""), nil
}
