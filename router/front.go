package router

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// front is the HTTP face of the SDK: JSON in and out, but for those paths that others
// have had before. Every 64-bit number goes out twice, as a number and as a *_str
// string, since JavaScript loses digits above 2^53.
type front struct {
	sdk     *client.Client
	inWork  *rpc.Admission
	ids     pb.SnowflakeClient
	segs    pb.SegmentClient
	maxBody *atomic.Int64 // in bytes
	isReady func() error  // as the admin listener has it
	log     *slog.Logger
}

// handler answers a request with a value for JSON, numbers for text, or a document; or
// with an error.
type handler func(r *http.Request) (any, error)

// route is one path with its one method. openapi.yaml has the same.
type route struct {
	method, path string // path as http.ServeMux reads it
	do           handler
	fault        faultShape
}

// faultShape writes an error as the users of a path know them.
type faultShape func(w http.ResponseWriter, code int, what fault)

func (f *front) routes() []route {
	return []route{
		{http.MethodPost, "/v1/next", f.next, plainFault},
		{http.MethodPost, "/v1/batch", f.batch, plainFault},
		{http.MethodGet, "/v1/current", f.current, plainFault},
		{http.MethodPost, "/v1/raise", f.raise, plainFault},

		{http.MethodPost, "/v1/snowflake/generate", f.generate, plainFault},
		{http.MethodGet, "/v1/snowflake/decode", f.decode, plainFault},
		{http.MethodPost, "/v1/snowflake/compose", f.compose, plainFault},
		{http.MethodGet, "/v1/snowflake/layouts", f.layouts, plainFault},
		{http.MethodPost, "/v1/segment/take", f.takeSegment, plainFault},

		{http.MethodPost, "/api/snowflake/v1/gen/{$}", f.gen, envelopedFault},
		{http.MethodPost, "/api/snowflake/v1/gen", f.gen, envelopedFault}, // else a redirect, which curl -d does not follow
		{http.MethodGet, "/api/segment/get/{tag}", f.leafSegment, plainFault},
		{http.MethodGet, "/api/snowflake/get/{key}", f.leafSnowflake, plainFault},
		{http.MethodGet, "/decodeSnowflakeId", f.leafDecode, plainFault},
		{http.MethodGet, "/cache", f.cache, plainFault},
		{http.MethodGet, "/db", f.db, plainFault},

		{http.MethodGet, "/livez", f.live, plainFault},
		{http.MethodGet, "/readyz", f.ready, plainFault},
		{http.MethodGet, "/openapi.yaml", f.openAPI, plainFault},
	}
}

func newFront(r *Router) http.Handler {
	f := &front{r.sdk, r.inWork, pb.NewSnowflakeClient(r.sdk.Any()), pb.NewSegmentClient(r.sdk.Any()), &r.maxBody, r.Ready, r.cfg.Logger}
	stats := &r.http
	mux := http.NewServeMux()
	for _, one := range f.routes() {
		mux.Handle(one.path, stats.watch(one.path, f.serve(one)))
	}
	mux.Handle("/", stats.watch(otherRoutes, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		plainFault(w, http.StatusNotFound, fault{"NOT_FOUND", "no such path: " + r.URL.Path})
	})))
	return mux
}

// serve lets the route's method through and writes what its handler gives.
func (f *front) serve(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != to.method && (to.method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", to.method)
			to.fault(w, http.StatusMethodNotAllowed,
				fault{"METHOD_NOT_ALLOWED", "method " + r.Method + " is not allowed, expected " + to.method})
			return
		}
		if to.method == http.MethodPost {
			if !isJSON(r) {
				to.fault(w, http.StatusUnsupportedMediaType, fault{"UNSUPPORTED_MEDIA_TYPE",
					"content type " + strconv.Quote(r.Header.Get("Content-Type")) + ", expected application/json"})
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, f.maxBody.Load())
		}
		answer, err := f.admitted(to, r)
		if err != nil {
			f.fail(w, r, to.fault, err)
			return
		}
		switch a := answer.(type) {
		case numbers:
			writeNumbers(w, a)
		case document:
			writeDocument(w, a)
		default:
			writeJSON(w, http.StatusOK, answer)
		}
	})
}

// admitted runs the route's handler if there is room for one more call. Whoever asks
// how the router is gets an answer in any case.
func (f *front) admitted(to route, r *http.Request) (any, error) {
	if to.path != "/livez" && to.path != "/readyz" {
		if err := f.inWork.Enter(0); err != nil {
			return nil, err
		}
		defer f.inWork.Leave(0)
	}
	return to.do(r)
}

// fail writes the error of a call.
func (f *front) fail(w http.ResponseWriter, r *http.Request, shape faultShape, err error) {
	code, what := faultOf(err)
	switch {
	case errors.Is(err, errTooLarge):
		code, what.Code = http.StatusRequestEntityTooLarge, "TOO_LARGE"
	case code == http.StatusServiceUnavailable, code == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case code == http.StatusInternalServerError:
		f.log.Error("call failed", "path", r.URL.Path, "error", err)
	}
	shape(w, code, *what)
}

func plainFault(w http.ResponseWriter, code int, what fault) { writeJSON(w, code, what) }

// query reads the parameters of a request, each at most once and none but those known.
func query(r *http.Request, known ...string) (map[string]string, error) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badArgument("malformed query: " + err.Error())
	}
	out := map[string]string{}
	for name, values := range all {
		at := -1
		for i, k := range known {
			if k == name {
				at = i
			}
		}
		switch {
		case at < 0:
			return nil, badArgument("unknown query parameter " + strconv.Quote(name) + ", expected " + strings.Join(known, ", "))
		case len(values) != 1:
			return nil, badArgument("query parameter " + strconv.Quote(name) + " is set more than once")
		case !utf8.ValidString(values[0]):
			return nil, badArgument("query parameter " + strconv.Quote(name) + " is not UTF-8")
		}
		out[name] = values[0]
	}
	return out, nil
}
