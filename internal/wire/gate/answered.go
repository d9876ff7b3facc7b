package gate

import "net/http"

// Answered remembers the status of an answer, for handlers that count or trace it.
type Answered struct {
	http.ResponseWriter
	Code int // 200 until the handler says otherwise
}

// Watch wraps the answer to one request.
func Watch(w http.ResponseWriter) *Answered {
	return &Answered{ResponseWriter: w, Code: http.StatusOK}
}

// WriteHeader implements http.ResponseWriter.
func (a *Answered) WriteHeader(code int) {
	a.Code = code
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *Answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
