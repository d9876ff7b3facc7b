package router_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestTicketsOverRESP(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "inbox", Sections: 8, Tickets: 500 * time.Millisecond})
	r := start(t, router.Config{Allocs: cluster.Addrs(), RESPListen: "127.0.0.1:0"})
	c := linetest.Dial(t, r.RESPAddr())
	ask := func(words ...string) string {
		c.Send(linetest.Array(words...))
		return c.Reply()
	}
	var first, last, ticket, life, replayed uint64
	opened := ask("SEQ.OPEN", "seq:inbox/7", "COUNT", "2", "LIFE", "400")
	if n, err := fmt.Sscanf(opened, "*[:%d :%d :%d :%d :%d]", &first, &last, &ticket, &life, &replayed); n != 5 || first != 1 || last != 2 || life != 400 || replayed != 0 {
		t.Fatalf("open: got %s, %v", opened, err)
	}
	for _, want := range []string{"+OK", "-ERR TICKET_ENDED"} {
		if got := ask("SEQ.DONE", "seq:inbox/7", "1", fmt.Sprint(ticket)); !strings.HasPrefix(got, want) {
			t.Errorf("done: got %s, want %s", got, want)
		}
	}
	for deadline := time.Now().Add(time.Minute); ; {
		got := ask("SEQ.MARK", "seq:inbox/7")
		if got == "*[*[:2 :0 :2 :0]]" {
			break
		}
		if !strings.HasPrefix(got, "*[*[nil nil :2 :") || time.Now().After(deadline) {
			t.Fatalf("mark: got %s", got)
		}
	}
	if got := ask("SEQ.OPEN", "seq:7"); !strings.HasPrefix(got, "-ERR NO_TICKETS") {
		t.Errorf("a space without tickets: got %s", got)
	}
	for command, want := range map[string]string{
		"SEQ.WAIT seq:inbox/7 1 3600000": "*[:2 :0 :2 :0 :55000]",
		"SEQ.WAIT seq:inbox/7 2 20":      "*[:2 :0 :2 :0 :20]",
		"SEQ.WAIT seq:inbox/7 3 50000":   "-ERR BAD_ARGUMENT: bad argument: after is 3, and the last number of inbox/7 is 2",
		"SEQ.WAIT seq:none/7 0 50000":    "-ERR UNKNOWN_SPACE",
	} {
		if got := ask(strings.Fields(command)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
	c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/7", "2", "50000"))
	harness.Until(t, "the wait", func() bool { return r.Watches() == 1 })
	other := linetest.Dial(t, r.RESPAddr())
	other.Want(":3", "INCR", "seq:inbox/7")
	if got := c.Reply(); got != "*[:3 :0 :3 :0 :50000]" {
		t.Errorf("a wait that a take ends: got %s", got)
	}
	c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/7", "3", "50000"))
	harness.Until(t, "the wait", func() bool { return r.Watches() == 1 })
	_ = c.Conn.Close()
	harness.Until(t, "the end of a wait whose caller left", func() bool { return r.Watches() == 0 })
}

func TestTicketsOverHTTP(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "inbox", Sections: 8, Tickets: 3 * time.Second},
		seq.Space{Name: "orders", Sections: 8, Tickets: time.Minute, Mode: seq.Exact})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr() + "/v1/"
	post := func(path, body string) (int, map[string]any) {
		code, _, got := do(t, "POST", base+path, "application/json", body)
		return code, got
	}
	code, opened := post("open", `{"space":"inbox","uid":7,"count":2,"life_ms":2500}`)
	if code != 200 || opened["first"] != 1.0 || opened["last"] != 2.0 || opened["life_ms"] != 2500.0 || opened["ticket"] == 0.0 {
		t.Fatalf("open: got %d %v", code, opened)
	}
	ticket := fmt.Sprintf(`{"space":"inbox","uid":7,"first":1,"ticket":%.0f}`, opened["ticket"])
	if code, got := post("done", ticket); code != 200 {
		t.Errorf("done: got %d %v", code, got)
	}
	if code, got := post("done", ticket); code != 410 || got["code"] != "TICKET_ENDED" {
		t.Errorf("done again: got %d %v", code, got)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		code, _, got := do(t, "GET", base+"mark?space=inbox&uids=7", "", "")
		if code != 200 || time.Now().After(deadline) {
			t.Fatalf("mark: got %d %v", code, got)
		}
		if fmt.Sprint(got["unknown_ms"]) == "[0]" {
			if fmt.Sprint(got["marks"], got["fences"], got["last"]) != "[2] [0] [2]" {
				t.Errorf("mark: got %v", got)
			}
			break
		}
	}
	for body, want := range map[string]string{`{"uid":7}`: "NO_TICKETS", `{"space":"inbox","uid":7,"life_ms":3001}`: "BAD_ARGUMENT"} {
		if code, got := post("open", body); code != 400 || got["code"] != want {
			t.Errorf("open of %s: got %d %v, want %s", body, code, got, want)
		}
	}
	once := `{"space":"orders","uid":7,"request_id":"YQ=="}`
	code, first := post("open", once)
	if code != 200 || first["first"] != 1.0 {
		t.Fatalf("open of a request: got %d %v", code, first)
	}
	if code, got := post("open", once); code != 200 || got["ticket"] != first["ticket"] || got["replayed"] != true {
		t.Errorf("the same request: got %d %v, want %v", code, got, first)
	}
	if code, got := post("done", fmt.Sprintf(`{"space":"orders","uid":7,"first":1,"ticket":%.0f}`, first["ticket"])); code != 200 {
		t.Errorf("done: got %d %v", code, got)
	}
	if code, got := post("open", once); code != 410 || got["code"] != "TICKET_ENDED" {
		t.Errorf("the same request after the mark: got %d %v", code, got)
	}
	if code, _, got := do(t, "GET", base+"mark?uids=7", "", ""); code != 400 || got["code"] != "NO_TICKETS" {
		t.Errorf("mark of a space without tickets: got %d %v", code, got)
	}
}
