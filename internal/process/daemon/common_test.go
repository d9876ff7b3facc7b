package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// journal is a log that may be read while it is written.
type journal struct{ textlog.Log }

// await waits until the log has the text.
func (j *journal) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(j.String(), want); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the log:\n%s", want, j.String())
		}
	}
}

// loader reads the settings of a daemon whose file is at path.
func loader(path string, log io.Writer) func(args []string) (*Common, error) {
	return func(args []string) (*Common, error) {
		c := &Common{}
		fs := pflag.NewFlagSet("seqd", pflag.ContinueOnError)
		fs.SetOutput(log)
		fs.Uint64("near-full", 100, "bytes")
		fs.String("name", "", "name")
		c.Flags(fs, "")
		if path != "" {
			args = append([]string{"--config", path}, args...)
		}
		if err := config.Load(fs, args, nil); err != nil {
			return nil, err
		}
		return c, c.Open(log)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// still is a service that is ready and stops when it is told to.
type still struct {
	prometheus.Collector
	running chan struct{} // closed by Run
	drain   chan struct{} // Run ends after ctx and this
	err     error         // of Ready
}

func newStill() *still {
	drain := make(chan struct{})
	close(drain)
	return &still{Collector: prometheus.NewGauge(prometheus.GaugeOpts{Name: "seq_still"}), drain: drain, running: make(chan struct{})}
}

func (s *still) Ready() error { return s.err }

func (s *still) Run(ctx context.Context) error {
	close(s.running)
	<-ctx.Done()
	<-s.drain
	return nil
}

func TestAHangupReloadsWhatMayChangeAndNamesTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seqd.yaml")
	write(t, path, "log-level: info\nnear-full: 100\nname: a\n")
	log := &journal{}
	load := loader(path, log)
	c, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	hup := make(chan os.Signal)
	c.hup = hup
	c.Reread = func() (*Common, error) { return load(nil) }
	nearFull := make(chan string, 1)
	reopened := make(chan struct{}, 2)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Serve(ctx, "seqd", func() (Service, error) {
			c.Live = map[string]func(string) error{"near-full": func(text string) error { nearFull <- text; return nil }}
			c.Hangup = func() { reopened <- struct{}{} }
			return newStill(), nil
		})
	}()
	write(t, path, "log-level: debug\nnear-full: 200\nname: b\n")
	hup <- syscall.SIGHUP
	if got := <-nearFull; got != "200" {
		t.Errorf("near-full became %s, want 200", got)
	}
	log.await(t, `msg="settings reloaded" changed=2 need_restart=1`)
	c.Logger.Debug("now heard")
	log.await(t, "now heard")
	log.await(t, `msg="setting changed" setting=near-full from=100 to=200`)
	log.await(t, `msg="setting needs a restart" setting=name from=a to=b`)
	write(t, path, "near-ful: 300\n")
	hup <- syscall.SIGHUP
	log.await(t, "settings not reloaded, nothing is changed")
	log.await(t, "near-ful")
	if len(reopened) != 2 {
		t.Errorf("files were opened again at %d of 2 hangups, one of which has bad settings", len(reopened))
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestTheAdminListenerAnswersWhileADaemonLoadsAndDrains(t *testing.T) {
	log := &journal{}
	c, err := loader("", log)([]string{"--admin", "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s := newStill()
	s.drain = make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	load := make(chan struct{})
	go func() {
		done <- c.Serve(ctx, "seqd", func() (Service, error) {
			<-load
			return s, nil
		})
	}()
	log.await(t, "admin listens")
	_, rest, _ := strings.Cut(log.String(), "addr=")
	addr, _, _ := strings.Cut(rest, " ")
	defer http.DefaultClient.CloseIdleConnections()
	at := "/readyz"
	probe := func() (int, string) {
		reply, err := http.Get("http://" + addr + at)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		return reply.StatusCode, string(text)
	}
	if code, text := probe(); code != 503 || !strings.Contains(text, "starting") {
		t.Errorf("while it loads: got %d %s", code, text)
	}
	for _, at = range []string{"/livez", "/metrics"} {
		if code, text := probe(); code != 200 {
			t.Errorf("%s while it loads: got %d %s", at, code, text)
		}
	}
	close(load)
	<-s.running
	at = "/readyz"
	if code, text := probe(); code != 200 {
		t.Errorf("before: got %d %s", code, text)
	}
	stop()
	if code, text := probe(); code != 503 || !strings.Contains(text, "shutting down") {
		t.Errorf("while it drains: got %d %s", code, text)
	}
	close(s.drain)
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestATakenAdminAddressStopsTheStartBeforeAnythingIsTouched(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	c, err := loader("", io.Discard)([]string{"--admin", lis.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Serve(t.Context(), "seqd", func() (Service, error) {
		t.Error("the daemon was started")
		return nil, errors.New("started")
	})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--admin") {
		t.Errorf("got %v, want the address in use, naming --admin", err)
	}
	if c, err := loader("", io.Discard)([]string{"--admin", "9090"}); !errors.Is(err, ErrUsage) {
		t.Errorf("an address without a port: got %v, %v", c, err)
	}
}

func TestConfigPrintsWhatIsSetAndFromWhereAndValidates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seqd.yaml")
	write(t, path, "near-full: 7\n")
	var out bytes.Buffer
	if err := ConfigVerb("seqd", []string{"print", "--name", "a"}, &out, loader(path, io.Discard)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"near-full: 7 # " + path + ":1", "name: a # flag --name", "log-level: info # default"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := ConfigVerb("seqd", []string{"validate"}, &out, loader(path, io.Discard)); err != nil || out.String() != "ok\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	write(t, path, "near-ful: 7\n")
	for _, args := range [][]string{{"validate"}, {"print"}, {}, {"show"}, {"validate", "--log-level", "loud"}} {
		if err := ConfigVerb("seqd", args, io.Discard, loader(path, io.Discard)); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: got %v, want a usage error", args, err)
		}
	}
}
