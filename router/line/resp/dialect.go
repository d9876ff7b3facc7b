package resp

import (
	"github.com/seqsvr/seqsvr/router/line"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

var described = line.Metrics{
	Requests: telemetry.Counter("router_resp_commands_total", "Commands of the RESP front; result: ok, error, or retry for those that are worth repeating.", "command", "result"),
	Seconds:  telemetry.Distribution("router_resp_pipeline_seconds", "How long the commands of a connection took that were answered together, up to their replies."),
	Sizes:    telemetry.Distribution("router_resp_pipeline_commands", "How many those were."),
	Conns:    telemetry.Gauge("router_resp_connections", "Connections of the RESP front."),
	MaxConns: telemetry.Gauge("router_resp_connections_limit", "How many there may be."),
	Opened:   telemetry.Counter("router_resp_connections_total", "Connections of the RESP front, by what became of them when they came.", "result"),
}

// dialect is the protocol of Redis for all connections of a Server.
type dialect struct {
	tallies line.Tallies
	incr    *line.Tally  // of INCR
	queued  atomic.Int64 // commands and keys in transactions
}

// New returns the protocol of Redis for one Server.
func New() line.Dialect { return newDialect() }

func newDialect() *dialect {
	d := &dialect{tallies: line.NewTallies(slices.Collect(maps.Keys(commands))...)}
	d.tallies[line.Queued], d.incr = &line.Tally{}, d.tallies["incr"]
	return d
}

// Name implements Dialect.
func (d *dialect) Name() string { return "RESP" }

// Open implements Dialect.
func (d *dialect) Open(c *line.Conn) line.Session { return &session{d: d, conn: c} }

// Full implements Dialect.
func (d *dialect) Full() string { return "-ERR max number of clients reached\r\n" }

// Tallies implements Dialect.
func (d *dialect) Tallies() line.Tallies { return d.tallies }

// Metrics implements Dialect.
func (d *dialect) Metrics() line.Metrics { return described }

// Read implements Session.
func (s *session) Read(data []byte, ops []line.Op) (int, []line.Op, error) {
	s.parser.small = s.conn.Stranger()
	args, used, err := s.parser.Next(data)
	if len(args) > 0 {
		ops = s.read(ops, args)
	}
	return used, ops, err
}

// Reply implements Session.
func (s *session) Reply(out []byte, o *line.Op) ([]byte, line.Result) {
	s.w.buf = out
	got := reply(&s.w, o)
	out, s.w.buf = s.w.buf, nil
	return out, got
}

// Refuse implements Session.
func (s *session) Refuse(out []byte, err error) []byte {
	s.w.buf = out
	s.w.fault("ERR " + err.Error())
	out, s.w.buf = s.w.buf, nil
	return out
}

// Memory implements Session.
func (s *session) Memory() (all, kept int) {
	if s.tx != nil {
		kept = s.tx.bytes
	}
	return cap(s.parser.spans)*int(unsafe.Sizeof(span{})) + cap(s.parser.args)*int(unsafe.Sizeof([]byte{})) + len(s.name) + kept, kept
}

// Trim implements Session.
func (s *session) Trim() { s.parser.drop() }

// End implements Session.
func (s *session) End() { s.forget() }

// reply writes the answer to an Op.
func reply(w *writer, o *line.Op) line.Result {
	switch {
	case o.Err != nil:
		text := faultText(o.Err)
		w.fault(text)
		if strings.HasPrefix(text, retryWord) {
			return line.Retry
		}
		return line.Failed
	case o.Kind == line.Local:
		o.Form.(answer)(w)
	case o.Kind == line.TakeID:
		w.bulk(strconv.FormatUint(o.N, 10)) // above 2^53: JavaScript would round an integer
	case o.Once != nil:
		if write, ok := o.Form.(form); ok {
			write(w, o.Once)
		} else {
			numbers(w, o)
		}
	case o.Kind != line.Read:
		w.integer(o.N)
	default:
		if o.Form != nil {
			w.array(len(o.Values))
		}
		for _, v := range o.Values {
			if v.Seq == 0 {
				w.null()
				continue
			}
			w.bulk(strconv.FormatUint(uint64(v.Seq), 10))
		}
	}
	return line.OK
}
