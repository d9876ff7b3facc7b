package fallback

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

const layoutText = "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=0;overflow=refuse"

func reply(worker, floor, last uint64, continues bool) *pb.SnowflakeDelegateReply {
	return &pb.SnowflakeDelegateReply{
		Layout: layoutText, Namespace: "default", DatacenterId: 1, WorkerId: worker, FloorTick: floor, LastTick: last,
		ConfirmedUnixMs: last, Continues: continues,
	}
}

// lent is windows with a clock that the test moves.
func lent(t *testing.T) (f *Windows, now *int64, parts func() (snowflake.Parts, error)) {
	t.Helper()
	now = new(int64)
	f = NewWindows("", time.Second, "", nil, slog.New(slog.DiscardHandler))
	f.clock = func() int64 { return *now }
	layout, err := snowflake.ParseLayout(layoutText)
	if err != nil {
		t.Fatal(err)
	}
	return f, now, func() (snowflake.Parts, error) {
		ids, err := f.Take(context.Background(), 1)
		if err != nil {
			return snowflake.Parts{}, err
		}
		p, err := layout.Decode(ids.Runs[0].First)
		if err != nil {
			t.Errorf("got %+v, %v", ids, err)
		}
		return p, nil
	}
}

func TestNoIDIsMadeOutsideOfTheWindow(t *testing.T) {
	f, now, next := lent(t)
	if _, err := next(); !errors.Is(err, ErrNoWindow) {
		t.Errorf("before any window: got %v, want %v", err, ErrNoWindow)
	}
	if err := f.adopt(reply(7, 1000, 2000, false)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		now int64
		ok  bool
	}{{500, false}, {1000, false}, {1001, true}, {2000, true}, {2001, false}, {99999, false}} {
		*now = row.now
		p, err := next()
		if (err == nil) != row.ok || !row.ok && !errors.Is(err, ErrNoWindow) {
			t.Errorf("at %d: got %+v, %v", row.now, p, err)
		}
		if row.ok && (p.Tick <= 1000 || p.Tick > 2000 || p.Worker != 7 || p.Datacenter != 1) {
			t.Errorf("at %d: got %+v", row.now, p)
		}
	}
	if got, want := f.window.Load().validUntil, time.UnixMilli(2001); !got.Equal(want) {
		t.Errorf("valid until %v, want %v", got, want)
	}
}

func TestOnlyAWindowThatContinuesIsJoined(t *testing.T) {
	rows := []struct {
		name   string
		second *pb.SnowflakeDelegateReply
		ok     bool // an ID between the two windows' ends can be made at 1500
	}{
		{"goes on", reply(7, 2000, 3000, true), true},
		{"says nothing of it", reply(7, 2000, 3000, false), false},
		{"another worker", reply(8, 2000, 3000, true), false},
		{"a hole", reply(7, 2500, 3000, true), false},
	}
	for _, row := range rows {
		f, now, next := lent(t)
		*now = 1400
		if err := f.adopt(reply(7, 1000, 2000, false)); err != nil {
			t.Fatal(err)
		}
		if _, err := next(); err != nil {
			t.Errorf("%s: first: %v", row.name, err)
		}
		if err := f.adopt(row.second); err != nil {
			t.Fatal(err)
		}
		*now = 1500
		if p, err := next(); (err == nil) != row.ok {
			t.Errorf("%s: at 1500: got %+v, %v", row.name, p, err)
		}
		*now = 2800
		if p, err := next(); err != nil || p.Tick != 2800 || uint64(p.Worker) != row.second.GetWorkerId() {
			t.Errorf("%s: at 2800: got %+v, %v", row.name, p, err)
		}
		*now = 3001
		if p, err := next(); !errors.Is(err, ErrNoWindow) {
			t.Errorf("%s: at 3001: got %+v, %v", row.name, p, err)
		}
	}
}

func TestAMalformedWindowIsRefused(t *testing.T) {
	f, now, next := lent(t)
	*now = 1500
	if err := f.adopt(reply(7, 1000, 2000, false)); err != nil {
		t.Fatal(err)
	}
	bad := reply(7, 2000, 3000, true)
	bad.Layout = "moon"
	for name, r := range map[string]*pb.SnowflakeDelegateReply{
		"no layout":                 bad,
		"an end before the start":   reply(7, 3000, 2000, true),
		"an end behind the layout":  reply(7, 2000, 1<<41, true),
		"a worker above the layout": reply(32, 2000, 3000, false),
	} {
		if err := f.adopt(r); !errors.Is(err, errMalformed) {
			t.Errorf("%s: got %v, want %v", name, err, errMalformed)
		}
	}
	if p, err := next(); err != nil || p.Worker != 7 {
		t.Errorf("the window before: got %+v, %v", p, err)
	}
}
