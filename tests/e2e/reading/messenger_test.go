package reading

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/examples/messenger"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// phone is what a user has.
type phone struct {
	all    []messenger.Message
	cursor seq.Seq
}

// gets adds messages. They have rising places, and no message comes twice.
func (p *phone) gets(t *testing.T, uid seq.UID, all []messenger.Message, cursor seq.Seq) {
	for _, m := range all {
		if m.N <= p.cursor || m.N > cursor {
			t.Errorf("user %d: message %s at %d, with the cursor from %d to %d", uid, m.ID, m.N, p.cursor, cursor)
		}
		for _, had := range p.all {
			if had.ID == m.ID {
				t.Errorf("user %d: message %s came at %d and at %d", uid, m.ID, had.N, m.N)
			}
		}
		p.all = append(p.all, m)
	}
	p.cursor = cursor
}

// A group of 200 gets each message once, live and by sync, while senders repeat and an AllocSvr is killed.
func TestAMessengerMissesNothingAndSendsNothingTwice(t *testing.T) {
	const users, senders, each = 200, 4, 12
	pool := database(t)
	c := harness.Start(t, func(cfg *localcluster.Config) {
		cfg.Sections, cfg.Lease, cfg.Spaces = 4, time.Second, []string{messenger.Space + ":sections=8,tickets=2s"}
	})
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	m := &messenger.Messenger{DB: stdlib.OpenDBFromPool(pool), Seq: sdk}
	if _, err := pool.Exec(harness.Within(t), messenger.Schema); err != nil {
		t.Fatal(err)
	}
	laterCommitIsSeen(t, m)

	group, live := make([]seq.UID, users), map[seq.UID]*phone{}
	cursors := map[seq.UID]seq.Seq{}
	for i := range group {
		group[i] = seq.UID(1000 + i)
		live[group[i]], cursors[group[i]] = &phone{}, 0
	}
	var mu sync.Mutex // guards live
	ctx, cancel := context.WithCancel(harness.Within(t))
	var delivering sync.WaitGroup
	delivering.Go(func() {
		err := m.Live(ctx, cursors, func(uid seq.UID, all []messenger.Message, cursor seq.Seq) error {
			mu.Lock()
			defer mu.Unlock()
			live[uid].gets(t, uid, all, cursor)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("live delivery ended: %v", err)
		}
	})
	owner := c.Process("alloc-1")
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d-%d", s, i)
				harness.Until(t, id+" is sent", func() bool { return m.Send(harness.Within(t), id, "hello", group...) == nil })
				if i%4 == 0 { // the sender did not see that it was
					if err := m.Send(harness.Within(t), id, "hello", group...); err != nil {
						t.Logf("sent again: %v", err)
					}
				}
				if s == 0 && i == each/2 {
					if err := errors.Join(owner.Kill(), owner.Start()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	sending.Wait()
	late := &phone{} // comes after all of it
	harness.Until(t, "a phone has everything", func() bool {
		all, cursor, err := m.Sync(harness.Within(t), group[7], late.cursor)
		if err == nil {
			late.gets(t, group[7], all, cursor)
		}
		return len(late.all) == senders*each
	})
	harness.Until(t, "everybody has everything live", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range live {
			if len(p.all) < senders*each {
				return false
			}
		}
		return true
	})
	cancel()
	delivering.Wait()
}

// laterCommitIsSeen commits a number after a higher one. A phone gets neither before the lower one is there.
func laterCommitIsSeen(t *testing.T, m *messenger.Messenger) {
	t.Helper()
	ctx, key := harness.Within(t), client.Key{Space: messenger.Space, UID: 1}
	lower, err := m.Seq.Open(ctx, key, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Send(ctx, "higher", "second", key.UID); err != nil {
		t.Fatal(err)
	}
	all, cursor, err := m.Sync(ctx, key.UID, 0)
	if err != nil || len(all) != 0 || cursor >= lower.First {
		t.Errorf("before the lower number is committed: %v up to %d, %v", all, cursor, err)
	}
	if _, err := m.DB.ExecContext(ctx, "insert into message (uid, n, id, body) values (1, $1, 'lower', 'first')", int64(lower.First)); err != nil {
		t.Fatal(err)
	}
	if err := lower.Done(ctx); err != nil {
		t.Fatal(err)
	}
	all, _, err = m.Sync(ctx, key.UID, cursor)
	if err != nil || len(all) != 2 || all[0].ID != "lower" || all[1].ID != "higher" {
		t.Errorf("after it: %v, %v, want lower and higher", all, err)
	}
}
