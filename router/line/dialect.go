package line

import "github.com/seqsvr/seqsvr/internal/process/telemetry"

// Dialect is a protocol on top of a Server. Its methods are safe for concurrent use.
type Dialect interface {
	// Name returns the protocol's name for logs and errors.
	Name() string
	// Open returns the Session of a new connection.
	Open(c *Conn) Session
	// Full returns the reply to a connection beyond the limit, which is then closed.
	Full() string
	// Tallies returns the counts of requests, Malformed among them.
	Tallies() Tallies
	// Metrics returns the metrics of the front.
	Metrics() Metrics
}

// Session is a Dialect on one connection. One goroutine at a time calls its methods.
type Session interface {
	// Read reads the request at the beginning of data and appends its Ops to ops. used is the size of
	// the request. If the request is not complete, used is zero, and the next data begin with the
	// same bytes. A request may have no Op. The data are valid during the call only. After an error
	// the connection ends.
	Read(data []byte, ops []Op) (used int, _ []Op, err error)
	// Reply appends the reply to an Op to out. Ops come in the order of their requests.
	Reply(out []byte, o *Op) ([]byte, Result)
	// Refuse appends the error with which the connection ends to out.
	Refuse(out []byte, err error) []byte
	// Memory returns the bytes that the Session holds. kept is the part that it holds because of
	// earlier requests, such as an open transaction.
	Memory() (all, kept int)
	// Trim frees the buffers of a connection that waits for a request.
	Trim()
	// End is called once, at the end of the connection.
	End()
}

// Result is the outcome of a request.
type Result int

// OK, Failed and Retry are the results. A request with Retry is worth repeating.
const (
	OK Result = iota
	Failed
	Retry
	results
)

// Metrics are the metrics of a front. Their names and helps name the dialect.
type Metrics struct {
	Requests telemetry.Metric // counter of requests, with the labels name and result
	Seconds  telemetry.Metric // durations of pipelines up to their replies
	Sizes    telemetry.Metric // requests of pipelines
	Conns    telemetry.Metric // gauge of connections
	MaxConns telemetry.Metric // gauge of the limit
	Opened   telemetry.Metric // counter of connections, with the label result
}
