package router

import (
	_ "embed"
	"net/http"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// openAPIText describes every path of the HTTP front.
//
//go:embed openapi.yaml
var openAPIText []byte

// document is an answer in YAML.
type document []byte

func writeDocument(w http.ResponseWriter, text document) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(text)
}

func (f *front) openAPI(*http.Request) (any, error) { return document(openAPIText), nil }

// index is the answer of "/", for people who have nothing but the address.
func (f *front) index(*http.Request) (any, error) {
	return struct {
		Service string `json:"service"`
		Version string `json:"version"`
		OpenAPI string `json:"openapi"`
	}{"seqsvr router", version.Get().Version, "/openapi.yaml"}, nil
}

// state is the answer of the probes.
type state struct {
	Status        string     `json:"status"`
	RoutesVersion uint64     `json:"routes_version,omitempty"`
	Sets          []setState `json:"sets,omitempty"` // none if the cluster is alone
}

// setState is one of several Sets.
type setState struct {
	Name          string `json:"name"`
	RoutesVersion uint64 `json:"routes_version"` // zero means unknown
	Away          string `json:"away,omitempty"` // the error of calls for the Set; if empty, calls go on
}

// live says that the process answers.
func (f *front) live(*http.Request) (any, error) { return state{Status: "ok"}, nil }

// ready answers as the admin listener does.
func (f *front) ready(*http.Request) (any, error) {
	if err := f.isReady(); err != nil {
		return nil, err
	}
	out, known := state{Status: "ok"}, f.sdk.Sets()
	for i, s := range known.All {
		one := setState{Name: s.Name}
		if s.Routes != nil {
			one.RoutesVersion = s.Routes.Version
		}
		if s.Away != nil {
			one.Away = s.Away.Error()
		}
		if i == 0 {
			out.RoutesVersion = one.RoutesVersion
		}
		if known.Map.Version > 0 {
			out.Sets = append(out.Sets, one)
		}
	}
	return out, nil
}
