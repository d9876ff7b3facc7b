// Package messenger is a group messenger over a SQL database and seqsvr: an inbox for each user, sync from a
// phone's cursor, and live delivery. A phone that has everything up to its cursor misses nothing, although
// messages are committed in another order than they took their numbers.
//
// It needs the table of Schema, and a space with tickets: seqctl space add 'inbox:tickets=10s'.
package messenger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
)

// Space has a sequence for each inbox.
const Space = "inbox"

// Schema makes the table of messages, in PostgreSQL.
const Schema = `create table message (uid bigint, n bigint, id text not null, body text not null,
	primary key (uid, n), unique (uid, id))`

// Messenger sends to inboxes and reads them. Safe for concurrent use.
type Messenger struct {
	DB  *sql.DB
	Seq *client.Client
}

// Message is one message in an inbox.
type Message struct {
	N    seq.Seq // its place
	ID   string  // its sender's, which makes it one message however often it is sent
	Body string
}

// Send puts a message into the inboxes of all members, or of none. It may be repeated, with the same id, after an
// error or a crash: members who have the message get no second one.
func (m *Messenger) Send(ctx context.Context, id, body string, members ...seq.UID) error {
	tickets, err := m.open(ctx, members)
	if err != nil {
		each(tickets, func(t *client.Ticket) error { return t.Cancel(context.WithoutCancel(ctx)) })
		return fmt.Errorf("send %s: %w", id, err)
	}
	if err := m.store(ctx, id, body, members, tickets); err != nil {
		// It may be committed all the same, a little later. The marks wait for it until the tickets end.
		return fmt.Errorf("send %s: %w", id, err)
	}
	each(tickets, func(t *client.Ticket) error { return t.Done(context.WithoutCancel(ctx)) })
	return nil
}

// each ends tickets, which travel together. A ticket that cannot be ended ends by itself, and marks wait until then.
func each(tickets []*client.Ticket, end func(*client.Ticket) error) {
	var all errgroup.Group
	for _, t := range tickets {
		if t != nil {
			all.Go(func() error { return end(t) })
		}
	}
	_ = all.Wait()
}

// open takes a number with a ticket for each member.
func (m *Messenger) open(ctx context.Context, members []seq.UID) ([]*client.Ticket, error) {
	tickets := make([]*client.Ticket, len(members))
	var open errgroup.Group
	for i, uid := range members {
		open.Go(func() error {
			t, err := m.Seq.Open(ctx, client.Key{Space: Space, UID: uid}, 1)
			if err == nil {
				tickets[i] = t
			}
			return err
		})
	}
	return tickets, open.Wait()
}

// store commits the message for all members before the first of their tickets ends.
func (m *Messenger) store(ctx context.Context, id, body string, members []seq.UID, tickets []*client.Ticket) error {
	for _, t := range tickets {
		within, cancel := t.Context(ctx)
		defer cancel()
		ctx = within
	}
	tx, err := m.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for i, uid := range members {
		if _, err := tx.ExecContext(ctx, `insert into message (uid, n, id, body) values ($1, $2, $3, $4)
			on conflict (uid, id) do nothing`, int64(uid), int64(tickets[i].First), id, body); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Sync returns the messages of an inbox after a cursor, and the next cursor. Nothing appears at or below that later.
func (m *Messenger) Sync(ctx context.Context, uid seq.UID, cursor seq.Seq) ([]Message, seq.Seq, error) {
	mark, err := m.mark(ctx, uid)
	if err != nil || mark <= cursor {
		return nil, cursor, err
	}
	rows, err := m.DB.QueryContext(ctx, "select n, id, body from message where uid = $1 and n > $2 and n <= $3 order by n",
		int64(uid), int64(cursor), int64(mark))
	if err != nil {
		return nil, cursor, err
	}
	defer rows.Close()
	var found []Message
	for rows.Next() {
		var one Message
		if err := rows.Scan(&one.N, &one.ID, &one.Body); err != nil {
			return nil, cursor, err
		}
		found = append(found, one)
	}
	if err := rows.Err(); err != nil {
		return nil, cursor, err
	}
	return found, mark, nil
}

// mark returns up to which number an inbox is whole. After a crash of an AllocSvr it waits until that is known.
func (m *Messenger) mark(ctx context.Context, uid seq.UID) (seq.Seq, error) {
	for {
		marks, err := m.Seq.Marks(ctx, client.Key{Space: Space, UID: uid})
		if err != nil {
			return 0, err
		}
		now := marks[0]
		if now.Err != nil || now.KnownIn == 0 {
			return now.Seq, now.Err
		}
		select {
		case <-time.After(now.KnownIn):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// Live delivers the messages of inboxes as they come, each from its cursor on, until ctx ends or deliver returns
// an error. One Live serves all phones of a gateway.
func (m *Messenger) Live(ctx context.Context, cursors map[seq.UID]seq.Seq, deliver func(uid seq.UID, all []Message, cursor seq.Seq) error) error {
	keys := make([]client.Key, 0, len(cursors))
	for uid := range cursors {
		keys = append(keys, client.Key{Space: Space, UID: uid})
	}
	watch, err := m.Seq.Watch(ctx, keys...)
	if err != nil {
		return err
	}
	defer watch.Close()
	for {
		news, err := watch.Next(ctx)
		if err != nil {
			return err
		}
		for _, u := range news {
			uid := u.Key.UID
			if u.Err != nil || u.Seq <= cursors[uid] {
				continue // the watch asks again, or the mark has not moved
			}
			all, cursor, err := m.Sync(ctx, uid, cursors[uid])
			if err == nil {
				err = deliver(uid, all, cursor)
			}
			if err != nil {
				return err
			}
			cursors[uid] = cursor
		}
	}
}
