package gate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// guest is the environment variable that has a process of this test panic in a handler.
const guest = "TEST_PANIC_IN"

func TestAPanicInAHandlerFailsTheTestThatCausedIt(t *testing.T) {
	handlers := map[string]func(){
		"grpc": func() {
			_, _, conn := start(t)
			_, err := pb.NewSequenceClient(conn).Next(t.Context(), &pb.NextRequest{Space: "panic"})
			fmt.Println("answered:", err)
		},
		"http": func() {
			srv := httptest.NewServer(gate.EndTests(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") })))
			defer srv.Close()
			resp, err := http.Get(srv.URL)
			if err == nil {
				_ = resp.Body.Close()
			}
			fmt.Println("answered:", err)
		},
	}
	if in := os.Getenv(guest); in != "" {
		handlers[in]()
		return
	}
	for name := range handlers {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), guest+"="+name)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: secret") {
			t.Errorf("%s: %v, want the process to end: %s", name, err, out)
		}
	}
}
