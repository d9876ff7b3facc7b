package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/peers"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// program is a client in another language, whose command takes the address of a RESP port and prints its rate as JSON.
type program struct {
	id, title, baseline string
	env                 []string
	// command returns the command. If the language or a library is missing, it returns peers.ErrAbsent.
	command func(ctx context.Context, root, dir string) ([]string, error)
}

const clientCallers = 64

var programs = []program{
	{id: "node-redis", title: "Node, node-redis", command: nodeRedis},
	{id: "node", title: "Node, the library", baseline: "node-redis", command: interpreted("node", "clients/node/test.js")},
	{id: "redis-py", title: "Python, redis-py, asyncio", command: redisPy},
	{id: "python", title: "Python, the library, asyncio", baseline: "redis-py", command: interpreted("python3", "clients/python/test.py")},
	{id: "python-threads", title: "the same, threads", baseline: "redis-py", env: []string{"SEQ_THREADS=1"}, command: interpreted("python3", "clients/python/test.py")},
	{id: "java", title: "Java, the library, futures", command: java},
	{id: "java-threads", title: "the same, threads", env: []string{"SEQ_THREADS=1"}, command: java},
}

func interpreted(exe, file string) func(context.Context, string, string) ([]string, error) {
	return func(_ context.Context, root, _ string) ([]string, error) {
		if _, err := exec.LookPath(exe); err != nil {
			return nil, fmt.Errorf("%w: there is no %s", peers.ErrAbsent, exe)
		}
		return []string{exe, filepath.Join(root, file), "bench"}, nil
	}
}

const redisClients = "tests/e2e/redisclients"

func nodeRedis(ctx context.Context, root, dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(root, redisClients, "node_modules", "redis")); err != nil {
		return nil, fmt.Errorf("%w: npm install --no-package-lock in %s brings node-redis", peers.ErrAbsent, redisClients)
	}
	return interpreted("node", redisClients+"/testdata/noderedis-bench.cjs")(ctx, root, dir)
}

func redisPy(ctx context.Context, root, _ string) ([]string, error) {
	for _, exe := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, exe, "-c", "import redis.asyncio").Run() == nil {
			return []string{exe, filepath.Join(root, redisClients, "testdata/redispy-bench.py"), "bench"}, nil
		}
	}
	return nil, fmt.Errorf("%w: apt-get install python3-redis brings redis-py", peers.ErrAbsent)
}

func java(ctx context.Context, root, dir string) ([]string, error) {
	classes := filepath.Join(dir, "classes")
	sources, err := filepath.Glob(filepath.Join(root, "clients/java/src/com/github/seqsvr/client/*.java"))
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("javac"); err != nil {
		return nil, fmt.Errorf("%w: there is no javac", peers.ErrAbsent)
	}
	args := append([]string{"-d", classes, filepath.Join(root, "clients/java/test/LibraryTest.java")}, sources...)
	if out, err := exec.CommandContext(ctx, "javac", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w: %s", err, out)
	}
	return []string{"java", "-cp", classes, "LibraryTest", "bench"}, nil
}

// clientSubject is a program with its command.
func clientSubject(p program, addr string, command []string) subject {
	s := report.Subject{ID: "client/" + p.id, Group: report.GroupClients, Title: p.title, Callers: clientCallers,
		Command: strings.TrimSpace(strings.Join(append(p.env, command...), " ") + " ADDR")}
	if p.baseline != "" {
		s.Baseline = "client/" + p.baseline
	}
	return subject{s, func(ctx context.Context, d time.Duration) (report.Sample, error) {
		cmd := exec.CommandContext(ctx, command[0], append(command[1:], addr)...)
		cmd.Env = append(append(os.Environ(), p.env...), fmt.Sprint("SEQ_SECONDS=", d.Seconds()), fmt.Sprint("SEQ_CALLERS=", clientCallers))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			return report.Sample{}, fmt.Errorf("%q: %w: %s", cmd.Args, err, stderr.String())
		}
		var got struct{ Rate float64 }
		if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || got.Rate <= 0 {
			return report.Sample{}, fmt.Errorf("%q printed %q: %w", cmd.Args, stdout.String(), err)
		}
		return report.Sample{Rate: got.Rate}, nil
	}}
}

// startClients adds the programs whose languages are there.
func (f *field) startClients(ctx context.Context, addr string) error {
	for _, p := range programs {
		if !f.settings.wants("client/" + p.id) {
			continue
		}
		command, err := p.command(ctx, f.root, f.dir)
		if err := f.skip(p.title, err); err != nil {
			return err
		}
		if err == nil {
			f.add([]subject{clientSubject(p, addr, command)})
		}
	}
	return nil
}
