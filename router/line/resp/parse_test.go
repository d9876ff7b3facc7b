package resp

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/router/line/linetest"
)

// feed gives the bytes to a parser, at most step at a time.
func feed(text []byte, step int) (all [][]string, err error) {
	var p Parser
	var data []byte
	for {
		args, used, err := p.Next(data)
		if err != nil {
			return all, err
		}
		if len(args) > 0 {
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			all = append(all, words)
		}
		if data = data[used:]; used > 0 {
			continue
		}
		if len(text) == 0 {
			return all, nil
		}
		n := min(len(text), step)
		data, text = append(data, text[:n]...), text[n:]
	}
}

func TestCommandsAreReadWhereverTheBytesAreCut(t *testing.T) {
	long := strings.Repeat("x", maxBulk)
	for _, tc := range []struct {
		text string
		want [][]string
	}{
		{"", nil},
		{linetest.Array("INCR", "seq:42"), [][]string{{"INCR", "seq:42"}}},
		{linetest.Array("PING") + linetest.Array("GET", "seq:1") + linetest.Array("ECHO", ""), [][]string{{"PING"}, {"GET", "seq:1"}, {"ECHO", ""}}},
		{"PING\r\n", [][]string{{"PING"}}},
		{"  INCR \t seq:42  \n", [][]string{{"INCR", "seq:42"}}},
		{"\r\n\r\n*0\r\n*-1\r\nPING\n", [][]string{{"PING"}}},
		{linetest.Array("ECHO", "a\r\nb*1$"), [][]string{{"ECHO", "a\r\nb*1$"}}},
		{linetest.Array("ECHO", long) + "PING\r\n", [][]string{{"ECHO", long}, {"PING"}}},
		{"PING\r\n" + linetest.Array("INCR", "tag:a") + "\r\nPING x\r\n", [][]string{{"PING"}, {"INCR", "tag:a"}, {"PING", "x"}}},
		{"*2\r\n$4\r\nINCR\r\n$6\r\nseq:4", nil},
		{"PING", nil},
	} {
		for _, step := range []int{1, 2, 3, 7, 1000, 1 << 20} {
			if got, err := feed([]byte(tc.text), step); err != nil || !cmp.Equal(got, tc.want) {
				t.Errorf("%.40q by %d: got %.80q, %v, want %.80q", tc.text, step, got, err, tc.want)
			}
		}
	}
}

func TestWhatIsNoRequestEndsTheConnectionByName(t *testing.T) {
	for text, want := range map[string]string{
		"*x\r\n":                                 "invalid multibulk length",
		"*-2\r\n":                                "invalid multibulk length",
		"*16385\r\n":                             "invalid multibulk length",
		"*1\r\nPING\r\n":                         "expected '$', got 'P'",
		"*1\r\n\x00":                             `expected '$', got '\x00'`,
		"*1\r\n$-1\r\n":                          "invalid bulk length",
		"*1\r\n$65537\r\n":                       "invalid bulk length",
		"*1\r\n$a\r\n":                           "invalid bulk length",
		"*1\r\n$4\r\nPINGxx":                     "bulk string without its end",
		strings.Repeat("a", maxLine+2):           "too big inline request",
		"*" + strings.Repeat("1", maxLine+2):     "too big multibulk length",
		strings.Repeat("a ", maxArgs+1) + "\r\n": "too big inline request",
		"POST / HTTP/1.1\r\nHost: a\r\n\r\nINCR seq:42\r\n":      "this is HTTP, expected a command of Redis",
		"post x\r\nINCR seq:42\r\n":                              "this is HTTP, expected a command of Redis",
		"GET /seq:42 HTTP/1.1\r\n\r\n":                           "this is HTTP, expected a command of Redis",
		"OPTIONS * http/1.0\r\n":                                 "this is HTTP, expected a command of Redis",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n":                           "this is HTTP, expected a command of Redis",
		"host: 127.0.0.1\r\nINCR seq:42\r\n":                     "this is HTTP, expected a command of Redis",
		linetest.Array(append([]string{"MGET"}, many(17)...)...): "request above 1048576 bytes",
	} {
		for _, step := range []int{1000, 1 << 20} {
			_, err := feed([]byte(text), step)
			var p *ProtocolError
			if !errors.As(err, &p) || err.Error() != "Protocol error: "+want {
				t.Errorf("%.30q by %d: got %v, want %s", text, step, err, want)
			}
		}
	}
}

// many are arguments of the largest size.
func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strings.Repeat("k", maxBulk)
	}
	return out
}

func FuzzTheParserReadsTheSameWhereverTheBytesAreCut(f *testing.F) {
	f.Add([]byte(linetest.Array("INCR", "seq:42")+linetest.Array("PING")), uint16(3))
	f.Add([]byte("INCR seq:1\r\n*2\r\n$3\r\nGET\r\n$5\r\nseq:1\r\n"), uint16(1))
	f.Add([]byte("*1\r\n$-1\r\n"), uint16(2))
	f.Add([]byte("\r\n*0\r\n*-1\r\n \t\n"), uint16(1))
	f.Add([]byte("*3\r\n$4\r\nMGET\r\n$0\r\n\r\n$1\r\n\n\r\n"), uint16(5))
	f.Add(bytes.Repeat([]byte("PING\r\n"), 700), uint16(997))
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		step := int(cut)%5000 + 1
		whole, err := feed(text, 1<<20)
		parts, err2 := feed(text, step)
		if diff := cmp.Diff(whole, parts); diff != "" {
			t.Fatalf("by %d: (-whole +parts)\n%s", step, diff)
		}
		// Only where a limit is met may it be met at another byte.
		if (err == nil) != (err2 == nil) && len(text) < maxLine {
			t.Fatalf("by %d: got %v, whole %v", step, err2, err)
		}
		for _, words := range whole {
			again, err := feed([]byte(linetest.Array(words...)), 1<<20)
			if err != nil || len(again) != 1 || !cmp.Equal(again[0], words) {
				t.Fatalf("%q written and read again: got %q, %v", words, again, err)
			}
		}
	})
}
