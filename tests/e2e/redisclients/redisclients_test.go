// Package redisclients tries clients of Redis, with their defaults, on the RESP front.
package redisclients

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// bound is the time that a client may take on a busy machine.
const bound = 2 * time.Minute

// start gives the RESP address of a router.
func start(t *testing.T) (host, port string) {
	t.Helper()
	cluster := clienttest.Start(t, 2)
	r, err := router.New(router.Config{Listen: "127.0.0.1:0", RESPListen: "127.0.0.1:0", Allocs: cluster.Addrs(), Timeout: time.Minute, AttemptTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = r.Close()
	})
	host, port, err = net.SplitHostPort(r.RESPAddr())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// script runs a client's script, which checks what it gets and ends with "done".
func script(t *testing.T, program, file string) {
	t.Helper()
	host, port := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, filepath.Join("testdata", file), host, port).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "done" {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
}

// node skips without Node.js or a module, which `npm install --no-package-lock` in this folder
// brings.
func node(t *testing.T, module, file string) {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join("node_modules", module)); err != nil {
		t.Skipf("%s is not installed: npm install --no-package-lock in tests/e2e/redisclients", module)
	}
	script(t, program, file)
}

func TestIORedisWorksWithItsDefaults(t *testing.T)   { node(t, "ioredis", "ioredis.cjs") }
func TestNodeRedisWorksWithItsDefaults(t *testing.T) { node(t, "redis", "noderedis.cjs") }

func TestRedisPyWorksWithItsDefaults(t *testing.T) {
	for _, program := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), program, "-c", "import redis").Run() == nil {
			script(t, program, "redispy.py")
			return
		}
	}
	t.Skip("redis-py is not installed: apt-get install python3-redis")
}

func TestGoRedisWorksWithItsDefaults(t *testing.T) {
	host, port := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(host, port)})
	defer c.Close()
	if n, err := c.Incr(ctx, "seq:6001").Result(); n != 1 || err != nil {
		t.Errorf("INCR: got %d, %v", n, err)
	}
	if got, err := c.Get(ctx, "seq:6001").Result(); got != "1" || err != nil {
		t.Errorf("GET: got %q, %v", got, err)
	}
	if _, err := c.Get(ctx, "seq:6999").Result(); err != redis.Nil {
		t.Errorf("GET of none: got %v, want %v", err, redis.Nil)
	}
	var got [2]*redis.IntCmd
	if _, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		got[0], got[1] = p.Incr(ctx, "seq:6002"), p.IncrBy(ctx, "seq:6002", 5)
		return nil
	}); err != nil || got[0].Val() != 1 || got[1].Val() != 6 {
		t.Errorf("transaction: got %v, %v, %v", got[0], got[1], err)
	}
	ids := map[int64]bool{}
	for range 500 {
		id, err := c.Incr(ctx, "snowflake:default").Result()
		if err != nil || id < 1<<53 {
			t.Fatalf("snowflake: got %d, %v", id, err)
		}
		ids[id] = true
	}
	if len(ids) != 500 {
		t.Errorf("500 snowflake IDs: got %d different ones", len(ids))
	}
	if err := c.Set(ctx, "seq:1", 5, 0).Err(); err == nil || !strings.Contains(err.Error(), "known are auth") {
		t.Errorf("SET: got %v", err)
	}
	// One that expects a cluster hears that this is none.
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{net.JoinHostPort(host, port)}})
	defer cluster.Close()
	if err := cluster.Incr(ctx, "seq:1").Err(); err == nil || !strings.Contains(err.Error(), "cluster support disabled") {
		t.Errorf("cluster client: got %v", err)
	}
}
