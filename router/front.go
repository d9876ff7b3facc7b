package router

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// front is the HTTP face of the same methods that the gRPC front serves. /v1 speaks their
// messages in JSON; the paths that others have had before are written by hand.
type front struct {
	methods
	guard    *auth.Guard
	refused  *rpc.Refused
	shown    func(*tls.ConnectionState) auth.Evidence // what a connection showed
	sdk      *client.Client
	maxBody  *atomic.Int64 // in bytes
	bodies   *gate.Budget  // of bodies in memory
	isReady  func() error  // as the admin listener has it
	names    browser.Names // that requests are addressed to
	leaf     bool          // Leaf's paths that take numbers are served
	log      *slog.Logger
	admitted admitted
	leaving  <-chan struct{}
}

// handler answers a request with a message or another value for JSON, numbers for text,
// or a document; or with an error.
type handler func(r *http.Request) (any, error)

// route is one path with its one method. openapi.yaml has the same.
type route struct {
	method, path string // path as http.ServeMux reads it
	do           handler
	fault        faultShape
	takes        bool // a GET that hands something out, as Leaf has it: not for a HEAD, nor for browsers

	// Of /v1: the messages of the request, with what is there if nothing is given, and of
	// the answer, and fields one of which must be given.
	in, out proto.Message
	needs   []string
}

// faultShape writes an error as the users of a path know them.
type faultShape func(w http.ResponseWriter, code int, what fault)

func (f *front) routes() []route {
	return append(f.v1(), []route{
		{method: http.MethodGet, path: "/v1/watch", do: f.watch, fault: plainFault},
		{method: http.MethodPost, path: "/api/snowflake/v1/gen/{$}", do: f.gen, fault: envelopedFault},
		{method: http.MethodPost, path: "/api/snowflake/v1/gen", do: f.gen, fault: envelopedFault}, // else a redirect, which curl -d does not follow
		{method: http.MethodGet, path: "/api/segment/get/{tag}", do: f.leafSegment, fault: plainFault, takes: true},
		{method: http.MethodGet, path: "/api/snowflake/get/{key}", do: f.leafSnowflake, fault: plainFault, takes: true},
		{method: http.MethodGet, path: "/decodeSnowflakeId", do: f.leafDecode, fault: plainFault},
		{method: http.MethodGet, path: "/cache", do: f.cache, fault: plainFault},
		{method: http.MethodGet, path: "/db", do: f.db, fault: plainFault},

		{method: http.MethodGet, path: "/{$}", do: f.index, fault: plainFault},
		{method: http.MethodGet, path: "/livez", do: f.live, fault: plainFault},
		{method: http.MethodGet, path: "/readyz", do: f.ready, fault: plainFault},
		{method: http.MethodGet, path: "/openapi.yaml", do: f.openAPI, fault: plainFault},
	}...)
}

func newFront(r *Router) http.Handler {
	f := &front{methodsOf(r.services, r.cfg.Guard, rpc.NewChanges(r.cfg.Logger, r.cfg.Guard, nil)), r.cfg.Guard, r.cfg.Refused, r.cfg.TLS.Evidence, r.sdk, &r.maxBody, r.budget, r.Ready,
		browser.NewNames("http-hosts", r.cfg.HTTPListen, r.cfg.HTTPHosts), r.cfg.Leaf, r.cfg.Logger, r.services.ids.sdk, r.leaving}
	stats := &r.http
	mux := http.NewServeMux()
	for _, one := range f.routes() {
		mux.Handle(one.path, stats.watch(one.path, f.serve(one)))
	}
	mux.Handle("/", stats.watch(otherRoutes, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.meant(w, r, plainFault) {
			return
		}
		plainFault(w, http.StatusNotFound, fault{Code: "NOT_FOUND", Message: "no such path: " + r.URL.Path})
	})))
	return mux
}

// serve lets the route's method through and writes what its handler gives.
func (f *front) serve(to route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		within := http.NewResponseController(w)
		if !f.meant(w, r, to.fault) || to.takes && !f.served(w, r, to.fault) {
			return
		}
		if r.Method != to.method && (to.method != http.MethodGet || to.takes || r.Method != http.MethodHead) {
			w.Header().Set("Allow", to.method)
			to.fault(w, http.StatusMethodNotAllowed,
				fault{Code: "METHOD_NOT_ALLOWED", Message: "method " + r.Method + " is not allowed, expected " + to.method})
			return
		}
		if to.method == http.MethodPost {
			if !isJSON(r) {
				to.fault(w, http.StatusUnsupportedMediaType, fault{Code: "UNSUPPORTED_MEDIA_TYPE", Message: "content type " + strconv.Quote(r.Header.Get("Content-Type")) + ", expected application/json in UTF-8"})
				return
			}
			body := &countedBody{ReadCloser: http.MaxBytesReader(w, r.Body, f.maxBody.Load()), from: r.RemoteAddr, all: f.bodies, within: within}
			defer body.done()
			r.Body = body
			_ = within.SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		who := f.whoOf(r)
		if to.method == http.MethodPost && f.guard.Mode() == auth.Require {
			if _, err := f.guard.Identify(who); err != nil { // before its body is read
				f.fail(w, r, to.fault, err)
				return
			}
		}
		ctx := with(r.Context(), who, r.RemoteAddr)
		answer, err := to.do(r.WithContext(gate.WithCaller(ctx, callerOf(r, who))))
		_ = within.SetWriteDeadline(time.Now().Add(writeTimeout))
		if err != nil {
			f.fail(w, r, to.fault, err)
			return
		}
		switch a := answer.(type) {
		case proto.Message:
			writeMessage(w, a)
		case numbers:
			writeNumbers(w, a)
		case document:
			writeDocument(w, a)
		case events:
			a(w)
		default:
			writeJSON(w, http.StatusOK, answer)
		}
	})
}

// budget bounds the bytes of HTTP bodies and of RESP commands and replies in memory. Larger bodies
// raise it. One client address may hold half.
const budget = 64 << 20

// smallBody is what every request may have in memory.
const smallBody = 8 << 10

// countedBody counts what was read of a body while its request is served.
type countedBody struct {
	io.ReadCloser
	from       string // address of the caller
	all        *gate.Budget
	own, drawn int64
	within     *http.ResponseController
}

// Read implements io.Reader: seq.ErrOverloaded while too much of other bodies is in memory.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.own += int64(n); b.own > smallBody {
		if !b.all.Draw(b.from, b.own-b.drawn) {
			return 0, fmt.Errorf("%w: unfinished bodies fill the memory for them", seq.ErrOverloaded)
		}
		b.drawn = b.own
	}
	if errors.Is(err, io.EOF) { // the deadline was for the body and not for the call
		_ = b.within.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *countedBody) done() { b.all.Draw(b.from, -b.drawn) }

// meant reports whether a request is for this router and not from a web page. If not, it answers.
func (f *front) meant(w http.ResponseWriter, r *http.Request, shape faultShape) bool {
	err := f.names.Check(r)
	if err == nil {
		err = browser.CheckSite(r)
	}
	return !f.refuses(w, r, shape, err)
}

// served reports whether a program may take numbers by GET, as Leaf has it. If not, it answers.
func (f *front) served(w http.ResponseWriter, r *http.Request, shape faultShape) bool {
	if !f.leaf {
		shape(w, http.StatusNotFound, fault{Code: "NOT_FOUND", Message: "Leaf's paths that take numbers by GET are off: expected a router with --leaf, or POST below /v1"})
		return false
	}
	return !f.refuses(w, r, shape, browser.CheckProgram(r))
}

// refuses answers a request that package browser found an error in.
func (f *front) refuses(w http.ResponseWriter, r *http.Request, shape faultShape, err error) bool {
	var wrong *browser.Error
	if !errors.As(err, &wrong) {
		return false
	}
	f.refused.Note(rpc.RefusedPage, r.RemoteAddr)
	shape(w, wrong.Status, fault{Code: wrong.Code, Message: wrong.Error()})
	return true
}

// fail writes the error of a call.
func (f *front) fail(w http.ResponseWriter, r *http.Request, shape faultShape, err error) {
	var quota *auth.QuotaError
	code, what := faultOf(err)
	f.refused.NoteError(err, r.RemoteAddr)
	switch {
	case errors.Is(err, errTooLarge):
		code, what.Code = http.StatusRequestEntityTooLarge, "TOO_LARGE"
	case errors.Is(err, auth.ErrExpired): // of a connection: the next may show a new one
		w.Header().Set("Connection", "close")
		fallthrough
	case code == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case errors.As(err, &quota):
		w.Header().Set("Retry-After", strconv.Itoa(int((quota.RetryAfter+time.Second-1)/time.Second)))
	case code == http.StatusServiceUnavailable, code == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case code == http.StatusInternalServerError:
		f.log.Error("call failed", "path", r.URL.Path, "error", err)
	}
	shape(w, code, *what)
}

func plainFault(w http.ResponseWriter, code int, what fault) { writeJSON(w, code, what) }

// query reads the parameters of a request, none but those known; known says of each
// whether it may stand there more than once.
func query(r *http.Request, known map[string]bool) (url.Values, error) {
	all, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badArgument("malformed query: " + err.Error())
	}
	for name, values := range all {
		many, ok := known[name]
		switch {
		case !ok:
			return nil, badArgument("unknown query parameter " + strconv.Quote(name) + ", expected " + strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case len(values) != 1 && !many:
			return nil, badArgument("query parameter " + strconv.Quote(name) + " is set more than once")
		case !utf8.ValidString(strings.Join(values, "")):
			return nil, badArgument("query parameter " + strconv.Quote(name) + " is not UTF-8")
		}
	}
	return all, nil
}
