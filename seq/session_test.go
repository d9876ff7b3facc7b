package seq

import "testing"

func TestEveryIncarnationDrawsASessionOfItsOwn(t *testing.T) {
	const draws = 1000 // two alike among so many of 2^64: once in 10^13 runs
	seen := make(map[Session]bool, draws)
	for range draws {
		s := NewSession()
		if s == 0 || seen[s] {
			t.Fatalf("session %v is zero or was drawn before", s)
		}
		seen[s] = true
	}
}

func TestEpochsAreOrderedByRoundAndThenBySession(t *testing.T) {
	rising := []Epoch{{}, {Round: 1, Session: 2}, {Round: 1, Session: 3}, {Round: 2, Session: 1}}
	for i, a := range rising {
		for j, b := range rising {
			if a.Less(b) != (i < j) || (a.Compare(b) == 0) != (i == j) {
				t.Errorf("%v and %v: less %v, compare %d", a, b, a.Less(b), a.Compare(b))
			}
		}
	}
}
