package rounds

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestABrokenPromiseEndsARunWhileItGoesOn(t *testing.T) {
	rows := []struct {
		name  string
		calls []history.Call
		runs  []snowflake.Run
		want  error
	}{
		{"all is well", []history.Call{number(1, 1, 2), number(2, 3, 4)}, []snowflake.Run{{First: 1, Last: 3, Stride: 1}}, nil},
		{"a number twice", []history.Call{number(1, 1, 2), number(1, 1, 2)}, nil, ErrViolated},
		{"a smaller number later", []history.Call{number(5, 1, 2), number(4, 3, 4)}, nil, ErrViolated},
		{"an ID twice", nil, []snowflake.Run{{First: 1, Last: 3, Stride: 1}, {First: 2, Last: 2, Stride: 1}}, ErrViolated},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := &session{load: &lab.Load{Clock: clock.NewManual(time.Hour)}, calls: &calls{ids: idBook{runs: row.runs}}, judgeAt: time.Hour}
			for _, c := range row.calls {
				s.load.History.Add(c)
			}
			if err := s.judge(time.Hour - 1); err != nil {
				t.Errorf("judged too early: %v", err)
			}
			if err := s.judge(time.Hour); !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func TestOnlyWhatAProcessSaidSinceTheFaultCounts(t *testing.T) {
	p := &localcluster.Process{Log: t.TempDir() + "/log"}
	if got := logged(p); got != 0 {
		t.Errorf("logged %d before it ran, want 0", got)
	}
	if err := localcluster.WriteJSON(p.Log, "of before"); err != nil {
		t.Fatal(err)
	}
	since := logged(p)
	if got := said(p, 0); got != "\"of before\"\n" {
		t.Errorf("said %q since the begin", got)
	}
	if got := said(p, since); got != "" {
		t.Errorf("said %q since, want nothing", got)
	}
}
