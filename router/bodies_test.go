package router_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// never is a body of which some bytes come, and the rest when the test ends.
type never struct {
	io.Reader
	ctx context.Context
}

func (n never) Read(p []byte) (int, error) {
	if k, err := n.Reader.Read(p); err == nil {
		return k, nil
	}
	<-n.ctx.Done()
	return 0, n.ctx.Err()
}

func TestSlowBodiesTakeNoPlacesOfCallers(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs(), MaxInWork: 10_064})
	ctx, cancel := context.WithCancel(bounded(t))
	const slow = 512 // of 154 calls that fit
	var begun, all sync.WaitGroup
	begun.Add(slow)
	for range slow {
		all.Go(func() {
			body := never{io.MultiReader(strings.NewReader(`{"uid":`), tells{&begun}), ctx}
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", body)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if reply, err := http.DefaultClient.Do(req); err == nil {
				_ = reply.Body.Close()
			}
		})
	}
	begun.Wait()
	if n := gauge(t, r, "seq_admission_in_work_keys"); n != 0 {
		t.Errorf("slow bodies count as %v keys in work", n)
	}
	if code := fetch(t, ctx, http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", `{"uid":1}`); code != http.StatusOK {
		t.Errorf("beside slow bodies: got %d", code)
	}
	cancel()
	all.Wait()
}

// tells is an empty end of a body that tells that it was reached.
type tells struct{ reached *sync.WaitGroup }

func (r tells) Read([]byte) (int, error) {
	r.reached.Done()
	return 0, io.EOF
}

func TestACallMayTakeLongerThanItsBody(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs(), AttemptTimeout: patience, Timeout: 4 * patience})
	cluster.Nodes[0].Hang()
	time.AfterFunc(5500*time.Millisecond, cluster.Nodes[0].Resume) // the body has 5 seconds
	if code := fetch(t, bounded(t), http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", `{"uid":1}`); code != http.StatusOK {
		t.Errorf("got %d", code)
	}
}

// One connection: an answer, a pause longer than an answer may take, answers; then none of
// many is read.
func TestAnswersHaveTimeOfTheirOwnAndAReaderThatStopsIsLeft(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	conn, err := net.Dial("tcp", r.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := errors.Join(conn.(*net.TCPConn).SetReadBuffer(4<<10), conn.SetDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	answered := func(request string) {
		t.Helper()
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%.20s: %v", request, err)
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		_ = reply.Body.Close()
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }
	answered(get("/api/snowflake/v1/get"))
	time.Sleep(10500 * time.Millisecond) // an answer has 10 seconds
	answered(get("/no/such/path"))
	uids := "[1" + strings.Repeat(",1", 9_999) + "]"
	body := `{"batches":[{"uids":` + uids + `}]}`
	batch := fmt.Sprintf("POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	answered(batch)
	if err := conn.SetWriteDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for err == nil { // until the router reads no more of them
		_, err = io.WriteString(conn, batch)
	}
	// The caller's kernel may not hear of the end before it reads, so ask the router's side.
	for bounded := bounded(t); serves(); time.Sleep(50 * time.Millisecond) {
		if bounded.Err() != nil {
			t.Fatal("a connection of which nothing is read is served on")
		}
	}
}

// serves says whether an HTTP connection is served in this process.
func serves() bool {
	var all strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&all, 2)
	return strings.Contains(all.String(), "net/http.(*conn).serve(")
}

func TestABodyThatDoesNotEndIsAnsweredAllTheSame(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	conn, err := net.Dial("tcp", r.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if err := errors.Join(err, conn.SetDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if text, _ := io.ReadAll(reply.Body); reply.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "within 5s") {
		t.Errorf("got %d %s, want %d", reply.StatusCode, text, http.StatusBadRequest)
	}
}
