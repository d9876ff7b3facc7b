package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// statusClientGone is what nginx logs for a caller that hung up; it reaches nobody.
const statusClientGone = 499

// wholeNumber says what a number field takes.
const wholeNumber = "a whole number from 0 to 18446744073709551615"

// number is a uint64 that may come as a JSON number or, whole, as a string.
type number uint64

// UnmarshalJSON takes 42 and "42", and no fraction, exponent or sign.
func (n *number) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	if n.parse(text) != nil {
		// This type of error, and no other, gets the field's name from the decoder.
		return &json.UnmarshalTypeError{Value: strconv.Quote(text[:min(len(text), 40)]), Type: reflect.TypeFor[number]()}
	}
	return nil
}

func (n *number) parse(text string) error {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q, expected %s", text, wholeNumber)
	}
	*n = number(v)
	return nil
}

func badArgument(text string) error { return fmt.Errorf("%w: %s", seq.ErrBadArgument, text) }

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// errTooLarge is a body above Config.HTTPMaxBody.
var errTooLarge = fmt.Errorf("%w: body", seq.ErrBadArgument)

// readJSON reads the one JSON object of a request; fields that are not known are
// refused, so that a misspelt one is not taken for its default.
func readJSON(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	var large *http.MaxBytesError
	err := d.Decode(into)
	if err == nil {
		switch _, err = d.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case !errors.As(err, &large):
			return badArgument("malformed JSON: more than one value")
		}
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &large):
		return fmt.Errorf("%w above %d bytes", errTooLarge, large.Limit)
	case errors.Is(err, io.EOF):
		return badArgument("malformed JSON: the body is empty")
	case errors.As(err, &kind) && kind.Field != "":
		// The name of a struct of ours says nothing to the caller.
		field := strings.TrimPrefix(kind.Field, "idRequest.")
		want := "a JSON " + kind.Type.String()
		switch kind.Type {
		case reflect.TypeFor[number]():
			want = wholeNumber
		case reflect.TypeFor[namespace]():
			want = "a name or a whole number"
		}
		return badArgument(fmt.Sprintf("field %s: %s, expected %s", field, kind.Value, want))
	}
	return badArgument("malformed JSON: " + strings.TrimPrefix(err.Error(), "json: "))
}

// fault is an error as JSON: the name of its ErrorCode, and a text for people.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// httpStatus is that of each gRPC code. FAILED_PRECONDITION is a cluster that an
// operator must look at, which no change of the request mends.
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
}

// httpOnly are the names of faults that have no ErrorCode.
var httpOnly = map[codes.Code]string{codes.Canceled: "CANCELED", codes.Unimplemented: "UNIMPLEMENTED"}

// faultOf turns an error into its HTTP status and JSON, by the table of internal/rpc.
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
	return code, &fault{name, st.Message()}
}

// writeJSON ignores a caller that hung up: there is nobody left to tell.
func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
