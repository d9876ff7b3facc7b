package processes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestAReplayGivesEveryRecipientItsNumbersWithoutAGap(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Spaces = []string{"college:sections=256"} })
	t.Run("sample", func(t *testing.T) {
		replayFile(t, c, samplePath, read(t, samplePath))
	})
	t.Run("college", func(t *testing.T) {
		if _, err := os.Stat(collegePath); err != nil {
			t.Skipf("no CollegeMsg.txt.gz beside the repository: %v", err)
		}
		log := read(t, collegePath)
		got, last := replayFile(t, c, collegePath, log, "--space", "college")
		if got.Events != 59_835 || got.Users != 1_899 {
			t.Errorf("got %d messages of %d users, want 59835 of 1899", got.Events, got.Users)
		}
		for user, want := range map[uint64]uint64{1624: 558, 323: 534, 32: 501} {
			if last[user] != want {
				t.Errorf("user %d ends at %d, want %d", user, last[user], want)
			}
		}
	})
}

// replayFile replays a file as people do, from its path.
func replayFile(t *testing.T, c *localcluster.Cluster, path string, log []msglog.Message, args ...string) (report, map[uint64]uint64) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "answers")
	ran := run(t, "seqctl", append(replayArgs(c, path, out), args...)...)
	if ran.Code != 0 {
		t.Fatalf("replay: exit %d: %s", ran.Code, ran.Stderr)
	}
	got := parseReport(t, []byte(ran.Stdout))
	last, skipped := check(t, log, readAnswers(t, out))
	wantClean(t, log, got, last, skipped)
	return got, last
}

// wantClean checks a replay in which nothing may be left out.
func wantClean(t *testing.T, log []msglog.Message, got report, last map[uint64]uint64, skipped uint64) {
	t.Helper()
	want, users := map[uint64]uint64{}, map[uint64]bool{}
	for _, m := range log {
		want[m.Recipient]++
		users[m.Sender], users[m.Recipient] = true, true
	}
	if got.Events != uint64(len(log)) || got.Users != uint64(len(users)) || got.Recipients != uint64(len(want)) || got.Duplicates != 0 || got.Regressions != 0 || got.Gaps != 0 || got.Skipped != 0 {
		t.Errorf("got %+v, want %d messages of %d users to %d recipients and nothing else", got, len(log), len(users), len(want))
	}
	if got.Rate <= 0 || got.P99 < got.P50 {
		t.Errorf("got a rate of %v, p50 %d and p99 %d", got.Rate, got.P50, got.P99)
	}
	if skipped != 0 {
		t.Errorf("%d numbers were left out, want none", skipped)
	}
	for user, n := range want {
		if last[user] != n {
			t.Fatalf("user %d ends at %d after %d messages", user, last[user], n)
		}
	}
}

func TestAClusterStoppedInOrderGoesOnWithoutAGap(t *testing.T) {
	log := bigLog(t)
	// The nodes wait at the second start, for twice their lease, for those that come
	// up late: they alone have the counters of their sections.
	c := start(t, nil)
	half := len(log) / 2
	first := startReplay(t, c)
	first.feed(log[:half])
	_, before := first.finish()
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.StartAll(); err != nil {
		t.Fatal(err)
	}
	harness.Ready(t, c)
	second := startReplay(t, c)
	second.feed(log[half:])
	got, after := second.finish()
	if got.Gaps != 0 || got.Duplicates != 0 || got.Regressions != 0 {
		t.Errorf("the second half: %+v, want it clean", got)
	}
	last, skipped := check(t, log, append(before, after...))
	if skipped != 0 {
		t.Errorf("%d numbers were left out, want none; the last ones are %v", skipped, last)
	}
}
