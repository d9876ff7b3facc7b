package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/base/jsontext"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// statusClientGone is what nginx logs for a caller that hung up; it reaches no caller.
const statusClientGone = 499

// wholeNumber says what a number field takes.
const wholeNumber = "a whole number from 0 to 18446744073709551615"

func badArgument(text string) error { return fmt.Errorf("%w: %s", seq.ErrBadArgument, text) }

func isJSON(r *http.Request) bool {
	kind, with, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return false
	}
	charset := strings.ToLower(with["charset"])
	return charset == "" || charset == "utf-8" || charset == "utf8" || charset == "us-ascii"
}

// errTooLarge is a body above Config.HTTPMaxBody.
var errTooLarge = fmt.Errorf("%w: body", seq.ErrBadArgument)

// readBody reads the body of a request.
func readBody(r *http.Request) ([]byte, error) {
	var body []byte
	var err error
	if n := r.ContentLength; 0 < n && n <= 64<<10 {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(r.Body)
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fmt.Errorf("%w above %d bytes", errTooLarge, large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, badArgument(fmt.Sprintf("body: it did not come whole within %v", bodyTimeout))
	case err != nil:
		return nil, badArgument("body: " + err.Error())
	}
	if err := jsontext.Check(body); err != nil { // two names would be read as one
		return nil, badArgument("malformed JSON: " + err.Error())
	}
	return body, nil
}

// parseJSON reads the one JSON object of a body; fields that are not known are refused,
// so that a misspelt one is not taken for its default.
func parseJSON(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return badArgument("malformed JSON: more than one value")
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return badArgument("malformed JSON: the body is empty")
	case errors.As(err, &kind) && kind.Field != "": // of the one struct that is read: see gen
		return badArgument(fmt.Sprintf("field %s: %s, expected a name or a whole number", kind.Field, kind.Value))
	case errors.As(err, &kind):
		return badArgument("malformed JSON: " + kind.Value + ", expected an object")
	}
	return badArgument("malformed JSON: " + strings.TrimPrefix(err.Error(), "json: "))
}

// fault is an error as JSON: the name of its ErrorCode, and a text for people. Of an
// ID_CONFLICT also what the request id has got, and of a batch of them what each has.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	First   uint64 `json:"first,omitempty"`
	Count   uint32 `json:"count,omitempty"`

	Errors []json.RawMessage `json:"errors,omitempty"` // as in the answer to a batch
}

// httpStatus maps gRPC codes to HTTP. FAILED_PRECONDITION is a fault of the cluster that an
// operator must fix. No change of the request helps.
var httpStatus = map[codes.Code]int{
	codes.InvalidArgument:    http.StatusBadRequest,
	codes.OutOfRange:         http.StatusBadRequest,
	codes.NotFound:           http.StatusNotFound,
	codes.AlreadyExists:      http.StatusConflict,
	codes.Aborted:            http.StatusConflict,
	codes.ResourceExhausted:  http.StatusTooManyRequests,
	codes.FailedPrecondition: http.StatusServiceUnavailable,
	codes.Unavailable:        http.StatusServiceUnavailable,
	codes.DeadlineExceeded:   http.StatusGatewayTimeout,
	codes.Canceled:           statusClientGone,
	codes.Unimplemented:      http.StatusNotImplemented,
	codes.Unauthenticated:    http.StatusUnauthorized,
	codes.PermissionDenied:   http.StatusForbidden,
}

// httpOnly are the names of faults that have no ErrorCode.
var httpOnly = map[codes.Code]string{codes.Canceled: "CANCELED", codes.Unimplemented: "UNIMPLEMENTED"}

// faultOf turns an error into its HTTP status and JSON, by the table of internal/wire/rpc.
func faultOf(err error) (int, *fault) {
	st, _ := status.FromError(rpc.ToStatus(err))
	code, ok := httpStatus[st.Code()]
	if !ok {
		code = http.StatusInternalServerError
	}
	name := strings.TrimPrefix(rpc.CodeOf(err).String(), "ERROR_CODE_")
	if name == "UNSPECIFIED" {
		name = "INTERNAL"
		if other, ok := httpOnly[st.Code()]; ok {
			name = other
		}
	}
	what := &fault{Code: name, Message: st.Message()}
	var conflict *seq.IDConflict
	var all *conflicts
	if errors.As(err, &all) {
		for _, one := range all.all {
			what.Errors = append(what.Errors, appendMessage(nil, one.ProtoReflect()))
		}
	}
	switch {
	case errors.As(err, &conflict):
		what.First, what.Count = uint64(conflict.First), conflict.Count
	case errors.Is(err, seq.ErrIDExpired), errors.Is(err, seq.ErrTicketEnded):
		code = http.StatusGone // it was here; no change of the request brings it back
	}
	return code, what
}

// writeJSON ignores that a caller hung up: it cannot be told.
func writeJSON(w http.ResponseWriter, code int, v any) {
	jsonHeader(w, code)
	_ = json.NewEncoder(w).Encode(v)
}

func jsonHeader(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
}

// jsonText is one line of JSON.
func jsonText(v any) string {
	text, _ := json.Marshal(v) // of structs of numbers and texts
	return string(text)
}
