package peers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/host"
	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

const (
	pgRows        = 100_000
	pgConnections = 64
)

// Postgres is one server.
type Postgres struct {
	server *host.Server
	pool   *pgxpool.Pool
}

// postgresBin is the folder of the newest version's programs.
func postgresBin() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: initdb", ErrAbsent)
	}
	slices.Sort(found)
	path, err := filepath.EvalSymlinks(found[len(found)-1])
	return filepath.Dir(path), err
}

// account returns the account that PostgreSQL runs under. It is nil unless this process runs as root.
func account() (*host.As, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &host.As{UID: uint32(uid), GID: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%w: an account postgres or nobody, because PostgreSQL does not run as root", ErrAbsent)
}

// StartPostgres makes a database below dir and starts a server on it.
func StartPostgres(ctx context.Context, dir string) (*Postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	as, err := account()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "postgres")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	if as != nil {
		if err := os.Chown(home, int(as.UID), int(as.GID)); err != nil {
			return nil, err
		}
	}
	wait, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	data := filepath.Join(home, "data")
	made, err := host.Start(home, "initdb", as, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C")
	if err != nil {
		return nil, err
	}
	// initdb ends by itself; what it leaves tells whether it worked.
	ended := made.Until(wait, func() error { return errors.New("initdb still runs") })
	if _, err := os.Stat(filepath.Join(data, "global", "pg_control")); err != nil {
		return nil, fmt.Errorf("initdb: %w: %w", err, ended)
	}
	port, err := host.FreePort()
	if err != nil {
		return nil, err
	}
	server, err := host.Start(home, "postgres", as, filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=100", "-c", "autovacuum=off", "-c", "log_min_messages=fatal")
	if err != nil {
		return nil, err
	}
	p := &Postgres{server: server}
	if err := p.fill(wait, port); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

// fill connects and makes the sequence and the rows.
func (p *Postgres) fill(ctx context.Context, port int) error {
	pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://bench@127.0.0.1:%d/postgres?pool_max_conns=%d&sslmode=disable", port, pgConnections))
	if err != nil {
		return err
	}
	p.pool = pool
	if err := p.server.Until(ctx, func() error { return pool.Ping(ctx) }); err != nil {
		return err
	}
	for _, line := range []string{
		"CREATE SEQUENCE numbers",
		"CREATE TABLE counters (uid bigint PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50)",
		fmt.Sprintf("INSERT INTO counters SELECT i, 0 FROM generate_series(0, %d) i", pgRows-1),
		"VACUUM ANALYZE counters",
	} {
		if _, err := pool.Exec(ctx, line); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// Stop ends the server.
func (p *Postgres) Stop() {
	if p.pool != nil {
		p.pool.Close()
	}
	p.server.Stop()
}

// Pool returns its connections.
func (p *Postgres) Pool() *pgxpool.Pool { return p.pool }

// Pids are the server's processes: one a connection, and some more.
func (p *Postgres) Pids() []int { return host.Children(p.server.Pid()) }

// The statements that are measured.
const (
	Nextval = "SELECT nextval('numbers')"
	Update  = "UPDATE counters SET n = n + 1 WHERE uid = $1 RETURNING n"
)

// Next measures one of the statements.
func (p *Postgres) Next(ctx context.Context, statement string, callers int, d time.Duration) (report.Sample, error) {
	return hand(ctx, callers, d, p.Pids, func(ctx context.Context, _ int) (int, error) {
		var args []any
		if statement == Update {
			args = append(args, rand.Int64N(pgRows))
		}
		var n int64
		if err := p.pool.QueryRow(ctx, statement, args...).Scan(&n); err != nil {
			return 0, err
		}
		return 1, nil
	})
}
