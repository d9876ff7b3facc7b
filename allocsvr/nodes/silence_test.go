package nodes

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	ms             = time.Millisecond
	a  seq.Session = 0xa
	b  seq.Session = 0xb
)

// answered lets pings of the session be answered after so long, and returns the time then.
func answered(s *Silence, id seq.Session, now, took time.Duration, times int) time.Duration {
	for range times {
		s.Sent(id, now)
		s.Heard(id, now+took)
		now += max(PingEvery, took)
	}
	return now
}

func quiet(s *Silence, now time.Duration) (all, fresh int) {
	x, y := s.Quiet(now)
	return len(x), len(y)
}

func TestANodeIsSilentOnceItsOldestPingHasWaitedForThreeTimesWhatIsUsual(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{ms: 40 * ms, 13 * ms: 40 * ms, 30 * ms: 90 * ms} {
		s := NewSilence(40 * ms)
		now := answered(s, a, time.Hour, took, 50)
		s.Sent(a, now)
		s.Sent(a, now+20*ms) // a later ping does not make it younger
		if all, _ := quiet(s, now+want-ms); all != 0 || !s.Hears(a, now+want-ms) {
			t.Errorf("answers took %v: silent before %v", took, want)
		}
		if all, fresh := quiet(s, now+want); all != 1 || fresh != 1 || s.Hears(a, now+want) {
			t.Errorf("answers took %v: not silent after %v", took, want)
		}
		if all, fresh := quiet(s, now+want+ms); all != 1 || fresh != 0 {
			t.Errorf("answers took %v: it is told of as new again", took)
		}
	}
}

func TestANodeThatWasSlowOnceIsGivenLessTimeAgain(t *testing.T) {
	s := NewSilence(40 * ms)
	now := answered(s, a, time.Hour, time.Second, 1)
	now = answered(s, a, now, ms, 300)
	s.Sent(a, now)
	if all, _ := quiet(s, now+40*ms); all != 1 {
		t.Error("one slow answer six seconds ago still counts")
	}
}

func TestWhileANodeRunsLateItselfOthersHaveLonger(t *testing.T) {
	s := NewSilence(40 * ms)
	now := answered(s, a, time.Hour, ms, known)
	s.Sent(a, now)
	for range 100 {
		s.Ran(20*ms, now)
	}
	if all, _ := quiet(s, now+100*ms-1); all != 0 {
		t.Error("silent, while this node runs 20 ms late")
	}
	for range 100 {
		s.Ran(0, now)
	}
	if all, _ := quiet(s, now+41*ms); all != 1 {
		t.Error("not silent, and this node runs on time again")
	}
}

func TestANodeIsNotSilentBeforeItIsKnownHowLongItUsuallyTakes(t *testing.T) {
	for answers, want := range map[int]int{0: 0, known - 1: 0, known: 1} {
		s := NewSilence(40 * ms)
		now := answered(s, a, time.Hour, ms, answers)
		s.Sent(a, now)
		if all, _ := quiet(s, now+time.Minute); all != want {
			t.Errorf("after %d answers: %d are silent, want %d", answers, all, want)
		}
	}
}

func TestAfterThreeFalseSuspicionsInAMinuteANodeHasTwiceAsLong(t *testing.T) {
	s := NewSilence(40 * ms)
	now := time.Hour
	for i := range 6 {
		now = answered(s, a, now, ms, 300)
		s.Sent(a, now)
		want := 40 * ms << (i / 3)
		if all, _ := quiet(s, now+want-ms); all != 0 {
			t.Errorf("suspicion %d: silent before %v", i, want)
		}
		if all, _ := quiet(s, now+want); all != 1 {
			t.Errorf("suspicion %d: not silent after %v", i, want)
		}
		if !s.Heard(a, now+want) {
			t.Errorf("suspicion %d is not told of as false", i)
		}
		now += want
	}
	now = answered(s, a, now+time.Minute, ms, 300)
	s.Sent(a, now)
	if all, _ := quiet(s, now+40*ms); all != 1 {
		t.Error("suspicions of a minute ago still count")
	}
}

func TestANodeThatIsLateItselfOrIsToldOfAnswersSuspectsNoOther(t *testing.T) {
	s := NewSilence(40 * ms)
	answered(s, a, time.Hour/2, ms, known)
	answered(s, b, time.Hour/2, ms, known)
	s.Sent(a, time.Hour)
	s.Sent(b, time.Hour)
	now := time.Hour + 100*ms
	s.Ran(70*ms, now)
	for range 100 {
		s.Ran(0, now)
	}
	if all, _ := quiet(s, now); all != 0 {
		t.Error("suspects others after it was late itself")
	}
	if all, _ := quiet(s, now+10*ms-1); all != 0 {
		t.Error("the time in which it stood still itself counts")
	}
	s.Sent(b, now)
	s.Ran(time.Hour, now) // longer than the ping is under way
	for range 300 {
		s.Ran(0, now)
	}
	if all, _ := quiet(s, now+40*ms-1); all != 0 {
		t.Error("it stood still for longer than the ping is under way, and that counts")
	}
	now += 41 * ms
	s.Spare(b, now)
	if all, _ := quiet(s, now); all != 1 || s.Hears(a, now) || !s.Hears(b, now) {
		t.Errorf("%d are silent, want a alone", all)
	}
	s.Forget(func(id seq.Session) bool { return id == b })
	if all, _ := quiet(s, now+39*ms); all != 0 {
		t.Error("a session that is gone is silent")
	}
}
