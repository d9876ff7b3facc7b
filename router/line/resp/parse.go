package resp

import (
	"bytes"
	"fmt"
	"strconv"
)

// Limits of a request. Keys are short, and the longest request that means anything is an
// MGET of 10,000 keys.
const (
	maxLine    = 64 << 10 // inline, or the head of anything else
	maxBulk    = 64 << 10 // one argument
	maxArgs    = 16 << 10 // of one command
	maxRequest = 1 << 20  // all bytes of one command
	// A connection that has not shown who it is may send less, as to a Redis with a password.
	strangerRequest = 16 << 10 // all bytes of a command, and each argument
	strangerArgs    = 10
	// keepArgs is the number of arguments for which the parser keeps its buffers.
	keepArgs = 64
)

// ProtocolError is a request that is none. Nothing behind it can be understood, so the
// connection ends with it.
type ProtocolError struct{ what string }

// Error is worded as clients know it.
func (e *ProtocolError) Error() string { return "Protocol error: " + e.what }

func protocolError(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// Parser parses commands from a stream of bytes. The zero Parser is ready for use. A Parser is not
// safe for concurrent use, does no I/O and keeps no bytes. Next returns the next complete command.
//
//	0 <= pos <= len(data); spans lie in data[:pos]
type Parser struct {
	pos   int // what was read of the command
	spans []span
	args  [][]byte // what Next gave last
	due   int      // arguments still missing; zero between two arrays
	bulk  int      // length of the argument whose header was read, or -1
	open  bool
	small bool // of a stranger
}

// span is an argument in the data.
type span struct{ from, to int }

// most returns the largest size of a part of a command.
func (p *Parser) most(most int) int {
	if p.small {
		return min(most, strangerRequest)
	}
	return most
}

// argsMost returns the largest number of arguments of a command.
func (p *Parser) argsMost() int {
	if p.small {
		return strangerArgs
	}
	return maxArgs
}

// Next reads the command at the beginning of data, and returns its arguments and how many bytes it
// took. If the command is not complete, that is zero, and the next data must begin with the same
// bytes. A command without arguments, such as an empty line, is to be passed over. The arguments are
// valid until data changes or Next is called again. After a *ProtocolError the Parser is of no use.
func (p *Parser) Next(data []byte) (args [][]byte, used int, err error) {
	done, err := p.step(data)
	if err != nil {
		return nil, 0, err
	}
	size := p.pos
	if !done {
		size = len(data)
	}
	if most := p.most(maxRequest); size > most {
		return nil, 0, protocolError("request above %d bytes", most)
	}
	if !done {
		return nil, 0, nil
	}
	args = p.args[:0]
	for _, s := range p.spans {
		args = append(args, data[s.from:s.to:s.to])
	}
	if p.args, p.spans = args, p.spans[:0]; cap(args) > keepArgs {
		p.args, p.spans = nil, nil
	}
	p.pos, p.due, p.open = 0, 0, false
	return args, size, nil
}

// step reads on; true when the command is complete.
func (p *Parser) step(data []byte) (bool, error) {
	if !p.open {
		if p.pos == len(data) {
			return false, nil
		}
		p.bulk = -1
		if data[p.pos] != '*' {
			return p.inline(data)
		}
		n, ok, err := p.head(data, "multibulk length", p.argsMost())
		if !ok || err != nil {
			return false, err
		}
		p.due, p.open = max(n, 0), true
	}
	for p.due > 0 {
		if ok, err := p.argument(data); !ok || err != nil {
			return false, err
		}
		p.due--
	}
	return true, nil
}

// argument reads one bulk string; false if it is not there yet.
func (p *Parser) argument(data []byte) (bool, error) {
	if p.bulk < 0 {
		if p.pos == len(data) {
			return false, nil
		}
		if c := data[p.pos]; c != '$' {
			return false, protocolError("expected '$', got '%s'", printable(c))
		}
		n, ok, err := p.head(data, "bulk length", p.most(maxBulk))
		if !ok || err != nil {
			return false, err
		}
		if n < 0 {
			return false, protocolError("invalid bulk length")
		}
		p.bulk = n
	}
	end := p.pos + p.bulk
	if len(data) < end+2 {
		return false, nil
	}
	if data[end] != '\r' || data[end+1] != '\n' {
		return false, protocolError("bulk string without its end")
	}
	p.spans = append(p.spans, span{p.pos, end})
	p.pos, p.bulk = end+2, -1
	return true, nil
}

// head reads a line of a type byte and a number up to most; false if it is not there yet.
func (p *Parser) head(data []byte, what string, most int) (int, bool, error) {
	if n, size := shortHead(data[p.pos:]); size > 0 && n <= most {
		p.pos += size
		return n, true, nil
	}
	line, ok, err := p.line(data, "too big "+what)
	if !ok || err != nil {
		return 0, false, err
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil || n < -1 || n > most {
		if p.small {
			return 0, false, protocolError("unauthenticated %s", what) // as Redis words it
		}
		return 0, false, protocolError("invalid %s", what)
	}
	return n, true, nil
}

// shortHead reads a head of one or two digits, which nearly all are; size 0 if it is none.
func shortHead(b []byte) (n, size int) {
	for i := 1; i < len(b) && i <= 3; i++ {
		switch d := b[i] - '0'; {
		case d <= 9 && i <= 2:
			n = 10*n + int(d)
		case b[i] == '\r' && i > 1 && i+1 < len(b) && b[i+1] == '\n':
			return n, i + 2
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// drop gives up the room for arguments of a Parser that has read nothing of the next command.
func (p *Parser) drop() {
	if p.pos == 0 {
		p.spans, p.args = nil, nil
	}
}

// line reads up to a newline, with or without a return before it.
func (p *Parser) line(data []byte, tooLong string) ([]byte, bool, error) {
	rest := data[p.pos:]
	at := bytes.IndexByte(rest, '\n')
	if at > maxLine || at < 0 && len(rest) > maxLine {
		return nil, false, protocolError("%s", tooLong)
	}
	if at < 0 {
		return nil, false, nil
	}
	p.pos += at + 1
	return bytes.TrimSuffix(rest[:at], []byte{'\r'}), true, nil
}

// inline reads a command as people type it: words with blanks between them. Quotes have
// no meaning, since no name here has a blank in it.
func (p *Parser) inline(data []byte) (bool, error) {
	line, ok, err := p.line(data, "too big inline request")
	if !ok || err != nil {
		return false, err
	}
	for i := 0; i < len(line); {
		if blank(line[i]) {
			i++
			continue
		}
		from := i
		for i < len(line) && !blank(line[i]) {
			i++
		}
		p.spans = append(p.spans, span{from, i})
	}
	if len(p.spans) > p.argsMost() {
		return false, protocolError("too big inline request")
	}
	if p.http(line) {
		return false, protocolError("this is HTTP, expected a command of Redis")
	}
	return true, nil
}

// http reports whether a line begins a request of HTTP, or is a header that each has. A web
// page can have a browser send one whose body is commands.
func (p *Parser) http(line []byte) bool {
	if len(p.spans) == 0 {
		return false
	}
	word := func(s span) []byte { return line[s.from:s.to] }
	first, last := word(p.spans[0]), word(p.spans[len(p.spans)-1])
	return bytes.EqualFold(first, []byte("POST")) || bytes.EqualFold(first, []byte("Host:")) ||
		len(p.spans) > 1 && bytes.HasPrefix(bytes.ToUpper(last[:min(5, len(last))]), []byte("HTTP/"))
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

func printable(c byte) string {
	if c < ' ' || c > '~' {
		return fmt.Sprintf("\\x%02x", c)
	}
	return string(c)
}
