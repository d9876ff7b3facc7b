package router

import (
	_ "embed"
	"net/http"
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
