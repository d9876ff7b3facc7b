package processes

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// devCluster is a `seqctl dev --secure` that runs.
type devCluster struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan error
	tries []string // the commands that it printed
	grpc  string
	http  string
	resp  string
	dir   string // of the certificates
}

// startSecure waits until it has printed what to try. The folder has a space in its name.
func startSecure(t *testing.T, dir string, args ...string) *devCluster {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	args = append([]string{"dev", "--secure", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
		"--sections", "64", "--allocs", "2", "--lease", "6s", "--ready-file", ready}, args...)
	d := &devCluster{t: t, cmd: harness.Command(context.Background(), t, nil, "seqctl", args...), ended: make(chan error, 1), dir: filepath.Join(dir, "secure")}
	var stderr bytes.Buffer
	d.cmd.Stderr = &stderr
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.cmd.ProcessState == nil {
			_ = d.cmd.Process.Kill() // its children die with it
			<-d.ended
		}
	})
	greeted := make(chan []string, 1)
	go func() {
		defer func() { d.ended <- d.cmd.Wait() }()
		var lines []string
		for in := bufio.NewScanner(out); in.Scan(); {
			if lines = append(lines, in.Text()); strings.HasPrefix(in.Text(), "Ctrl-C") {
				greeted <- lines
			}
		}
	}()
	select {
	case lines := <-greeted:
		d.read(lines, ready)
	case err := <-d.ended:
		d.ended <- err
		t.Fatalf("ended: %v: %s", err, stderr.String())
	case <-harness.Within(t).Done():
		t.Fatal("it does not greet")
	}
	return d
}

// read takes the commands out of the greeting.
func (d *devCluster) read(lines []string, ready string) {
	d.t.Helper()
	for _, line := range lines {
		if rest, first := strings.CutPrefix(line, "try:     "); first || len(d.tries) > 0 && strings.HasPrefix(line, "         ") {
			d.tries = append(d.tries, strings.TrimSpace(rest))
		}
	}
	text, err := os.ReadFile(ready)
	var told struct{ GRPC, HTTP, RESP string }
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.grpc, d.http, d.resp = told.GRPC, told.HTTP, told.RESP
}

func (d *devCluster) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
	select {
	case err := <-d.ended:
		d.ended <- nil
		if err != nil {
			d.t.Fatalf("stop: %v", err)
		}
	case <-harness.Within(d.t).Done():
		d.t.Fatal("it does not stop")
	}
}

// runTries runs each command that was printed, as a person would paste it.
func (d *devCluster) runTries() {
	d.t.Helper()
	wants := []string{`\b42\b`, `cluster local-`, `\b42\b`, `"first":\d+`, `^\d+\s*$`}
	if len(d.tries) != len(wants) {
		d.t.Fatalf("printed %q, want %d commands", d.tries, len(wants))
	}
	for i, line := range d.tries {
		for _, tool := range []string{"curl", "redis-cli"} {
			if _, err := exec.LookPath(tool); err != nil && strings.Contains(line, tool+" ") {
				d.t.Logf("not run, there is no %s: %s", tool, line)
				line = ""
			}
		}
		if line == "" {
			continue
		}
		// On a busy machine a node is taken for dead at times, and the status says so.
		harness.Until(d.t, line+" to do what it says", func() bool {
			cmd := exec.CommandContext(harness.Within(d.t), "sh", "-e", "-c", line)
			cmd.Dir = d.t.TempDir()
			out, err := cmd.CombinedOutput()
			good := err == nil && regexp.MustCompile(wants[i]).Match(out)
			if !good {
				d.t.Logf("%s: %v: %s", line, err, out)
			}
			return good
		})
	}
}

func (d *devCluster) file(name string) string { return filepath.Join(d.dir, name) }

func (d *devCluster) text(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// tls trusts the CA and shows nothing.
func (d *devCluster) tls() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(d.text(auth.CAFile)))
	return &tls.Config{RootCAs: pool}
}

// web is what curl does.
func (d *devCluster) web(token string) (code int, answer string) {
	d.t.Helper()
	transport := &http.Transport{TLSClientConfig: d.tls()}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(harness.Within(d.t), http.MethodPost, "https://"+d.http+"/v1/next", strings.NewReader(`{"uid":42}`))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply.StatusCode, string(body)
}

// redis is what redis-cli does: the last answer.
func (d *devCluster) redis(lines ...string) string {
	d.t.Helper()
	conn, err := tls.Dial("tcp", d.resp, d.tls())
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	in, answer := bufio.NewReader(conn), ""
	for _, line := range lines {
		if _, err = fmt.Fprintf(conn, "%s\r\n", line); err == nil {
			answer, err = in.ReadString('\n')
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	return strings.TrimSpace(answer)
}

func TestASecureDevPrintsCommandsThatWorkAndKeepsItsCA(t *testing.T) {
	for name, args := range map[string][]string{"in one process": nil, "as processes": {"--processes"}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "it's here")
			d := startSecure(t, dir, args...)
			ca, token := d.text(auth.CAFile), d.text("app.token")
			for range 2 {
				d.runTries()
				if code, answer := d.web(token); code != http.StatusOK || !strings.Contains(answer, `"first"`) {
					t.Errorf("HTTPS with the token: %d %s", code, answer)
				}
				if code, answer := d.web(""); code != http.StatusUnauthorized {
					t.Errorf("HTTPS without a token: %d %s", code, answer)
				}
				if got := d.redis("AUTH "+token, "INCR seq:42"); !strings.HasPrefix(got, ":") {
					t.Errorf("RESP with the token: %s", got)
				}
				if got := d.redis("INCR seq:42"); !strings.HasPrefix(got, "-NOAUTH") {
					t.Errorf("RESP without a token: %s", got)
				}
				for what, args := range map[string][]string{
					"a caller's token asks for the status": {"status", "--tls-ca", d.file(auth.CAFile), "--token-file", d.file("app.token")},
					"nobody takes a number":                {"next", "42", "--tls-ca", d.file(auth.CAFile)},
					"plaintext":                            {"next", "42"},
				} {
					if got := run(t, "seqctl", append(args, "--addr", d.grpc, "--timeout", "5s")...); got.Code != 1 {
						t.Errorf("%s: exit %d: %s%s", what, got.Code, got.Stdout, got.Stderr)
					}
				}
				if t.Failed() {
					return
				}
				d.stop()
				tries := d.tries
				d = startSecure(t, dir, args...)
				if again := d.text(auth.CAFile); again != ca {
					t.Error("the restart has another CA")
				}
				if fmt.Sprint(d.tries) != fmt.Sprint(tries) {
					t.Errorf("the restart says %q, before %q", d.tries, tries)
				}
			}
			d.stop()
		})
	}
}
