package router_test

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// redisTool runs a tool of Redis against the router.
func redisTool(t *testing.T, name string, r *router.Router, stdin string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	host, port, err := net.SplitHostPort(r.RESPAddr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out.String())
	}
	return out.String()
}

func TestRedisCLIWorksUnchanged(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("orders")
	r := start(t, router.Config{Allocs: cluster.Addrs(), RESPListen: "127.0.0.1:0", Timeout: time.Minute, AttemptTimeout: 30 * time.Second})
	script := "incr seq:42\nincrby seq:42 10\nget seq:42\nget seq:43\nmget seq:42 seq:43\nincr tag:orders\nincrby tag:orders 2\nset seq:42 1\nping\n"
	want := "1\n11\n11\n\n11\n\n1\n3\nERR unknown command 'set', with args beginning with: 'seq:42' '1' ; known are auth, client, cluster, command, config, " +
		"discard, echo, exec, get, hello, incr, incrby, info, mget, multi, ping, quit, select, seq.cancel, seq.done, seq.lookup, seq.mark, seq.next, seq.open, seq.raise, seq.wait, unwatch, watch\n\nPONG\n"
	if got := redisTool(t, "redis-cli", r, script); got != want {
		t.Errorf("script: (-want +got)\n%s", cmp.Diff(want, got))
	}
	first := redisTool(t, "redis-cli", r, "", "-3", "incr", "snowflake:default")
	if second := redisTool(t, "redis-cli", r, "", "incr", "snowflake:1"); first == second || len(strings.TrimSpace(first)) < 15 {
		t.Errorf("snowflake IDs: got %s and %s", first, second)
	}
	if stat := redisTool(t, "redis-cli", r, "", "info", "server"); !strings.Contains(stat, "redis_mode:standalone") {
		t.Errorf("INFO: got %s", stat)
	}
	// redis-cli --pipe sends all at once and counts the replies.
	piped := redisTool(t, "redis-cli", r, strings.Repeat("INCR seq:7\r\n", 5000), "--pipe")
	if !strings.Contains(piped, "errors: 0, replies: 5000") {
		t.Errorf("--pipe: got %s", piped)
	}
	if got := redisTool(t, "redis-cli", r, "", "get", "seq:7"); got != "5000\n" {
		t.Errorf("after 5,000 INCR: got %s", got)
	}
}

func TestRedisBenchmarkWorksUnchanged(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs(), RESPListen: "127.0.0.1:0", Timeout: time.Minute, AttemptTimeout: 30 * time.Second})
	for _, args := range [][]string{
		{"-q", "-n", "2000", "-c", "20", "-r", "1000", "incr", "seq:__rand_int__"},
		{"-q", "-n", "2000", "-c", "4", "-P", "50", "incr", "seq:42"},
	} {
		if got := redisTool(t, "redis-benchmark", r, "", args...); !strings.Contains(got, "requests per second") || strings.Contains(got, "ERR") {
			t.Errorf("%q: got %s", args, got)
		}
	}
	if _, err := exec.LookPath("redis-cli"); err == nil {
		// It may send some more than it was asked for.
		got, err := strconv.Atoi(strings.TrimSpace(redisTool(t, "redis-cli", r, "", "get", "seq:42")))
		if err != nil || got < 2000 || got > 2100 {
			t.Errorf("after 2,000 INCR of one key: got %d, %v", got, err)
		}
	}
}

func TestARouterWithoutRESPHasNoSuchFront(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	if got := start(t, router.Config{Allocs: cluster.Addrs()}).RESPAddr(); got != "" {
		t.Errorf("got %q", got)
	}
}
