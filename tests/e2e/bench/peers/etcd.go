package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

// errEtcd: a transaction answered something else than expected.
var errEtcd = errors.New("etcd: unexpected answer")

// Etcd is one member.
type Etcd struct {
	server *host.Server
	client *clientv3.Client
}

// StartEtcd starts one member below dir.
func StartEtcd(ctx context.Context, dir string) (*Etcd, error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, fmt.Errorf("%w: etcd", ErrAbsent)
	}
	dir = filepath.Join(dir, "etcd")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var urls [2]string
	var ports [2]int
	for i := range urls {
		port, err := host.FreePort()
		if err != nil {
			return nil, err
		}
		urls[i], ports[i] = fmt.Sprintf("http://127.0.0.1:%d", port), port
	}
	server, err := host.Start(dir, "etcd", nil, "etcd", "--name", "bench", "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", urls[0], "--advertise-client-urls", urls[0], "--listen-peer-urls", urls[1],
		"--initial-advertise-peer-urls", urls[1], "--initial-cluster", "bench="+urls[1], "--log-level", "error", "--quota-backend-bytes", strconv.Itoa(8<<30))
	if err != nil {
		return nil, err
	}
	e := &Etcd{server: server}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := server.Until(wait, func() error { return host.Listening(ports[0]) }); err != nil {
		e.Stop()
		return nil, err
	}
	if e.client, err = clientv3.New(clientv3.Config{Endpoints: urls[:1], DialTimeout: 10 * time.Second, Logger: zap.NewNop()}); err != nil {
		e.Stop()
		return nil, err
	}
	if _, err := e.client.Get(wait, "ready"); err != nil {
		e.Stop()
		return nil, err
	}
	return e, nil
}

// Stop ends the member.
func (e *Etcd) Stop() {
	if e.client != nil {
		_ = e.client.Close()
	}
	e.server.Stop()
}

// Pids are the member's processes.
func (e *Etcd) Pids() []int { return []int{e.server.Pid()} }

// Next measures transactions that each take the next number of a random key: a put,
// and in the same transaction a get, whose version is the number.
func (e *Etcd) Next(ctx context.Context, callers int, d time.Duration) (report.Sample, error) {
	return hand(ctx, callers, d, e.Pids, func(ctx context.Context, _ int) (int, error) {
		key := "seq/" + strconv.Itoa(rand.IntN(redisKeys))
		reply, err := e.client.Txn(ctx).Then(clientv3.OpPut(key, ""), clientv3.OpGet(key)).Commit()
		if err != nil {
			return 0, err
		}
		if r := reply.Responses; len(r) != 2 || len(r[1].GetResponseRange().GetKvs()) != 1 || r[1].GetResponseRange().Kvs[0].Version < 1 {
			return 0, errEtcd
		}
		return 1, nil
	})
}
