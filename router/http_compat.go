package router

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// This file has the paths that others had first, with the answers that their callers
// know: a service that gave out IDs of numbered namespaces, and Leaf.

// envelope is the one shape of all answers of /api/snowflake/v1/gen/.
type envelope struct {
	Message string `json:"message"`
	Code    int32  `json:"code"` // zero means success
	Data    any    `json:"data"`
}

// envelopedFault has the number of the ErrorCode as its code, or the HTTP status for
// faults that have none.
func envelopedFault(w http.ResponseWriter, code int, what fault) {
	number := pb.ErrorCode_value["ERROR_CODE_"+what.Code]
	if number == 0 {
		number = int32(code)
	}
	writeJSON(w, code, envelope{Message: what.Message, Code: number})
}

// namespace is a name, or a number in digits, which JSON may have as a number.
type namespace string

// UnmarshalJSON takes "orders", "1" and 1.
func (n *namespace) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte{'"'}) {
		return json.Unmarshal(b, (*string)(n))
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		// This type of error, and no other, gets the field's name from the decoder.
		return &json.UnmarshalTypeError{Value: strconv.Quote(string(b[:min(len(b), 40)])), Type: reflect.TypeFor[namespace]()}
	}
	*n = namespace(str(v))
	return nil
}

func (f *front) gen(r *http.Request) (any, error) {
	var req struct {
		Namespace namespace `json:"namespace"`
	}
	body, err := readBody(r)
	if err == nil {
		err = parseJSON(body, &req)
	}
	if err != nil {
		return nil, err
	}
	if req.Namespace == "" {
		return nil, badArgument("namespace is missing")
	}
	got, err := f.generate(r.Context(), &pb.SnowflakeGenerateRequest{Namespace: string(req.Namespace), Count: 1})
	if err != nil {
		return nil, err
	}
	return envelope{Message: "success", Data: struct {
		ID         uint64 `json:"snowflake_id"`
		Datacenter uint64 `json:"datacenter_id"`
		IDStr      string `json:"snowflake_id_str"`
	}{got.GetIds()[0], got.GetDatacenterId(), str(got.GetIds()[0])}}, nil
}

// numbers is an answer in plain text: one a line, and no newline behind the last.
type numbers iter.Seq[uint64]

func writeNumbers(w http.ResponseWriter, all numbers) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := bufio.NewWriter(w)
	defer out.Flush() // a caller that hung up cannot be told
	var line []byte
	for n := range all {
		line = strconv.AppendUint(line, n, 10)
		if _, err := out.Write(line); err != nil {
			return
		}
		line = append(line[:0], '\n')
	}
}

// countOf is ?count=, 1 if it is not there.
func countOf(r *http.Request, check func(string, uint64) error) (uint32, error) {
	q, err := query(r, map[string]bool{"count": false})
	if err != nil {
		return 0, err
	}
	n := uint64(1)
	if q.Has("count") {
		if n, err = strconv.ParseUint(q.Get("count"), 10, 64); err != nil {
			return 0, badArgument(fmt.Sprintf("count: %.40q, expected %s", q.Get("count"), wholeNumber))
		}
	}
	if err := check("count", n); err != nil {
		return 0, err
	}
	return uint32(n), nil
}

func (f *front) leafSegment(r *http.Request) (any, error) {
	count, err := countOf(r, seq.CheckCount)
	if err != nil {
		return nil, err
	}
	got, err := f.take(r.Context(), &pb.SegmentTakeRequest{Tag: r.PathValue("tag"), Count: count})
	if err != nil {
		return nil, err
	}
	return numbers(func(yield func(uint64) bool) {
		for n := got.GetFirst(); n <= got.GetLast() && yield(n); n++ {
		}
	}), nil
}

// leafSnowflake takes Leaf's key for the namespace, by name or number. Leaf has one
// namespace for all keys and does not look at them; here an unknown one is refused.
func (f *front) leafSnowflake(r *http.Request) (any, error) {
	count, err := countOf(r, seq.CheckIDs)
	if err != nil {
		return nil, err
	}
	key := r.PathValue("key")
	if !utf8.ValidString(key) { // no message can carry it
		return nil, badArgument(fmt.Sprintf("namespace %.64q is not UTF-8", key))
	}
	got, err := f.generate(r.Context(), &pb.SnowflakeGenerateRequest{Namespace: key, Count: count})
	if err != nil {
		return nil, err
	}
	return numbers(slices.Values(got.GetIds())), nil
}

// leafDecode reads IDs of Leaf's layout, whoever made them: no AllocSvr is asked.
func (f *front) leafDecode(r *http.Request) (any, error) {
	if err := f.guard.Check(whoIn(r.Context()), pb.Snowflake_Decode_FullMethodName, nil); err != nil {
		return nil, err
	}
	q, err := query(r, map[string]bool{"snowflakeId": false})
	if err != nil {
		return nil, err
	}
	if !q.Has("snowflakeId") {
		return nil, badArgument("snowflakeId is missing")
	}
	text := q.Get("snowflakeId")
	l, err := snowflake.Preset("leaf")
	if err != nil {
		return nil, err
	}
	id, err := snowflake.Decimal.Parse(strings.TrimPrefix(text, "-"))
	if err == nil && strings.HasPrefix(text, "-") {
		err = snowflake.ErrSign
	}
	var parts snowflake.Parts
	var at time.Time
	if err == nil {
		parts, err = l.Decode(id)
	}
	if err == nil {
		at, err = l.TimeOf(parts.Tick)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: snowflakeId %.40q: %w", seq.ErrBadID, text, err)
	}
	ms := strconv.FormatInt(at.UnixMilli(), 10)
	return struct {
		Timestamp string `json:"timestamp"` // as Leaf writes it, but always in UTC
		Worker    string `json:"workerId"`
		Sequence  string `json:"sequenceId"`
	}{ms + "(" + at.UTC().Format("2006-01-02 15:04:05.000") + ")", str(parts.Worker), str(parts.Sequence)}, nil
}
