package rpc

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

// atMinute is a counter whose clock stands still until the test moves it.
func atMinute(minute *int64) *Refused {
	r := NewRefused(nil)
	r.now = func() time.Time { return time.Unix(60**minute, 0) }
	return r
}

func TestRefusalsAreCountedByReasonAndHost(t *testing.T) {
	minute := int64(1000)
	r := atMinute(&minute)
	r.Note(RefusedUnread, "10.0.0.1:4711")
	r.Note(RefusedUnread, "10.0.0.1:4712")
	r.Note(RefusedUnread, "[2001:db8::1]:80")
	r.Note(RefusedUnfinished, "10.0.0.1")
	r.Note(RefusedUnfinished, "")
	for err, reason := range map[error]Reason{
		seq.ErrUnauthenticated: RefusedUnauthenticated, seq.ErrForbidden: RefusedForbidden, seq.ErrQuota: RefusedQuota, seq.ErrOverloaded: RefusedOverloaded,
		ErrUnread: RefusedUnread, seq.ErrForeignCluster: RefusedForeign, seq.ErrJump: RefusedRaise, seq.ErrWorkersExhausted: RefusedWorkers,
		seq.ErrTickUsedUp: "", seq.ErrUIDMemory: "", seq.ErrExactMemory: "", seq.ErrNoQuorum: "", nil: "",
	} {
		of := NewRefused(nil)
		of.NoteError(fmt.Errorf("wrapped: %w", err), "h:1")
		var want []Refusal
		if reason != "" {
			want = []Refusal{{reason, "h", 1}}
		}
		if diff := cmp.Diff(want, of.Totals()); diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
	}
	want := []Refusal{
		{RefusedUnread, "10.0.0.1", 2}, {RefusedUnfinished, "10.0.0.1", 1}, {RefusedUnfinished, OtherAddresses, 1}, {RefusedUnread, "2001:db8::1", 1},
	}
	if diff := cmp.Diff(want, r.Totals()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, r.Recent()); diff != "" {
		t.Error(diff)
	}
	var none *Refused
	none.Note(RefusedUnread, "a:1")
	none.NoteError(seq.ErrQuota, "a:1")
	if none.Totals() != nil || none.Recent() != nil {
		t.Error("a nil counter counts")
	}
}

func TestRecentRefusalsAreForgottenAfterSomeMinutes(t *testing.T) {
	minute := int64(1000)
	r := atMinute(&minute)
	recent := func() (n uint64) {
		for _, one := range r.Recent() {
			n += one.Count
		}
		return n
	}
	for range 2 * RecentMinutes {
		minute++
		r.Note(RefusedQuota, "a:1")
	}
	if got := recent(); got != RecentMinutes+1 {
		t.Errorf("got %d, want %d", got, RecentMinutes+1)
	}
	minute -= 3 // a clock that was set back
	r.Note(RefusedQuota, "a:1")
	if got := recent(); got != RecentMinutes+2 {
		t.Errorf("the clock was set back: got %d", got)
	}
	minute += 3 + RecentMinutes
	if got := recent(); got != 2 {
		t.Errorf("after %d minutes: got %d, want the latest", RecentMinutes, got)
	}
	minute++
	if got := recent(); got != 0 {
		t.Errorf("after one more: got %d", got)
	}
	if got := r.Totals()[0].Count; got != 2*RecentMinutes+1 {
		t.Errorf("total: got %d", got)
	}
}

// However many addresses come, the one with the most refusals is named, and the number of
// labels is bounded.
func TestTheAddressWithTheMostRefusalsIsKeptApart(t *testing.T) {
	minute := int64(1000)
	r := atMinute(&minute)
	const crowd = 20_000
	for i := range crowd {
		r.Note(RefusedOverloaded, fmt.Sprintf("10.%d.%d.1:9", i/250, i%250))
		if i >= 100 && i%4 == 0 { // it comes when all places are taken
			r.Note(RefusedOverloaded, "192.0.2.7:9")
		}
	}
	var sum uint64
	seen := map[string]uint64{}
	for _, one := range r.Recent() {
		seen[one.Address] = one.Count
		sum += one.Count
	}
	if len(seen) > maxAddresses+1 || seen["192.0.2.7"] < crowd/4-100 || sum != crowd+(crowd-100)/4 {
		t.Errorf("%d addresses, %d of the loud one, %d in all", len(seen), seen["192.0.2.7"], sum)
	}
}

func TestRefusalsOfOneReasonAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		r := NewRefused(slog.New(slog.NewTextHandler(&text, nil)))
		for range 1000 {
			r.Note(RefusedUnread, "a:1")
			r.Note(RefusedUnfinished, "b:1")
			r.Note(RefusedQuota, "c:1") // an everyday matter
		}
		if lines := strings.Count(text.String(), "\n"); lines != 2 || strings.Contains(text.String(), "quota") {
			t.Errorf("%d lines, want 2:\n%s", lines, text.String())
		}
		time.Sleep(time.Second)
		r.Note(RefusedUnread, "a:1")
		if !strings.Contains(text.String(), "reason=unread address=a others_not_logged=999") {
			t.Errorf("no count of the lines that were left out:\n%s", text.String())
		}
	})
}

func TestEachReasonHasARowInTheRunbook(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, runbook, _ := strings.Cut(string(text), "### SeqMisuseRefused")
	runbook, _, _ = strings.Cut(runbook, "\n### ")
	for _, reason := range Reasons() {
		if !strings.Contains(runbook, "`"+string(reason)+"`") {
			t.Errorf("no row for %q", reason)
		}
	}
}
