package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// policyText allows a page what it is made of, and nothing that is not a file of ours: no
// inline script or style, no eval, no frame, no other host.
const policyText = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// routes are all there is. Pages and their files show nothing of the cluster, so that one
// who has yet to sign in sees where; all below api/ is checked.
func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", c.page)
	mux.HandleFunc("/assets/{name}", c.asset)
	mux.Handle("/api/stream", c.checked(pb.Admin_Status_FullMethodName, c.stream))
	mux.Handle("/api/snapshot", c.checked(pb.Admin_Status_FullMethodName, c.poll))
	mux.Handle("/api/uid", c.checked(pb.Sequence_Current_FullMethodName, c.lookup(c.uid)))
	mux.Handle("/api/id", c.checked(pb.Snowflake_Decode_FullMethodName, c.lookup(c.id)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	})
	return c.guarded(mux)
}

// guarded is what holds for every request.
func (c *Console) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policyText)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		var wrong *browser.Error
		if errors.As(c.cfg.Names.CheckHost(r), &wrong) {
			c.cfg.Refused.Note(rpc.RefusedPage, r.RemoteAddr)
			refuse(w, wrong.Status, wrong.Error())
			return
		}
		if r.Method != http.MethodGet {
			h.Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, "method "+r.Method+": expected GET, nothing can be changed here")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checked lets through callers that may look at the cluster and call the method.
func (c *Console) checked(method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.may(r, method); err != nil {
			c.cfg.Refused.NoteError(err, r.RemoteAddr)
			fail(w, err)
			return
		}
		next(w, r)
	})
}

// may asks the policy as it is now.
func (c *Console) may(r *http.Request, method string) error {
	if c.cfg.Guard == nil {
		return nil
	}
	var who auth.Credentials
	if c.cfg.Evidence != nil {
		who.Evidence = c.cfg.Evidence(r.TLS)
	}
	who.Token, who.Err = auth.Bearer(r.Header.Values(rpc.AuthHeader))
	if err := c.cfg.Guard.Check(who, pb.Admin_Status_FullMethodName, nil); err != nil {
		return err
	}
	return c.cfg.Guard.Check(who, method, nil)
}

// fault is an error as pages show it.
type fault struct {
	Error string `json:"error"`
}

func fail(w http.ResponseWriter, err error) {
	code := http.StatusBadGateway
	switch {
	case errors.Is(err, seq.ErrUnauthenticated), errors.Is(err, auth.ErrExpired):
		code = http.StatusUnauthorized // the page has a form of its own
		w.Header().Set("WWW-Authenticate", "Bearer")
	case errors.Is(err, seq.ErrForbidden):
		code = http.StatusForbidden
	case errors.Is(err, seq.ErrBadArgument), errors.Is(err, seq.ErrUnknownSpace), errors.Is(err, seq.ErrBadID),
		errors.Is(err, seq.ErrUnknownNamespace), errors.Is(err, seq.ErrBadLayout):
		code = http.StatusBadRequest
	case errors.Is(err, errBusy):
		code = http.StatusServiceUnavailable
	}
	refuse(w, code, err.Error())
}

func refuse(w http.ResponseWriter, code int, why string) { answer(w, code, fault{why}) }

func answer(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what) // the browser has left
}
