package router

import (
	"bufio"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// This file has the paths that others had first, with the answers that their callers
// know: a service that gave out IDs of numbered namespaces, and Leaf.

// envelope is the one shape of all answers of /api/snowflake/v1/gen/.
type envelope struct {
	Message string `json:"message"`
	Code    int32  `json:"code"` // 0: success
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

func (f *front) gen(r *http.Request) (any, error) {
	var req struct {
		Namespace namespace `json:"namespace"`
	}
	if err := readJSON(r, &req); err != nil {
		return nil, err
	}
	if req.Namespace == "" {
		return nil, badArgument("namespace is missing")
	}
	got, err := f.sdk.Generate(r.Context(), string(req.Namespace), 1)
	if err != nil {
		return nil, err
	}
	return envelope{Message: "success", Data: struct {
		ID         snowflake.ID         `json:"snowflake_id"`
		Datacenter snowflake.Datacenter `json:"datacenter_id"`
		IDStr      string               `json:"snowflake_id_str"`
	}{got.First(), got.Datacenter, strconv.FormatInt(int64(got.First()), 10)}}, nil
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
	q, err := query(r, "count")
	if err != nil {
		return 0, err
	}
	n := number(1)
	if text, ok := q["count"]; ok {
		if err := n.parse(text); err != nil {
			return 0, badArgument("count: " + err.Error())
		}
	}
	if err := check("count", uint64(n)); err != nil {
		return 0, err
	}
	return uint32(n), nil
}

func (f *front) leafSegment(r *http.Request) (any, error) {
	count, err := countOf(r, seq.CheckCount)
	if err != nil {
		return nil, err
	}
	first, last, err := f.sdk.TakeSegment(r.Context(), r.PathValue("tag"), count)
	if err != nil {
		return nil, err
	}
	return numbers(func(yield func(uint64) bool) {
		for n := first; n <= last && yield(uint64(n)); n++ {
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
	got, err := f.sdk.Generate(r.Context(), r.PathValue("key"), count)
	if err != nil {
		return nil, err
	}
	return numbers(func(yield func(uint64) bool) {
		for id := range got.All() {
			if !yield(uint64(id)) {
				return
			}
		}
	}), nil
}

// leafDecode reads IDs of Leaf's layout, whoever made them: no AllocSvr is asked.
func (f *front) leafDecode(r *http.Request) (any, error) {
	q, err := query(r, "snowflakeId")
	if err != nil {
		return nil, err
	}
	text, ok := q["snowflakeId"]
	if !ok {
		return nil, badArgument("snowflakeId is missing")
	}
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
