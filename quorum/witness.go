package quorum

import "slices"

// inquiry is what the session has gathered for a store that has restarted and does not
// vote before its disk was compared with what its fellow stores remember.
type inquiry struct {
	nonce uint64 // of the store's start; zero if the store votes
	// after is the number of renewals made before the nonce came. Another store's reply to one of them may
	// be older than the disk that this store had.
	after   uint64
	fellows map[string]Claim // what they said since, by their uuid
}

// Witness remembers what a store said of its disk with a promise or an accepted value. So
// the renewals that attach a register tell W stores of every disk that its owner rests on,
// before it serves.
func (l *Leases) Witness(c Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.now.Load().stores {
		if s.uuid == c.Store {
			s.saw(c)
		}
	}
}

// saw takes in what the store said of its disk, and reports whether it is the first word of another
// process that counts the same boot. Callers hold l.mu.
func (s *storeLease) saw(c Claim) (twin bool) {
	newer := s.seen.Less(c)
	if s.seen.Twin(c) {
		twin = !s.seen.Twin(s.twin)
		if s.twin = c; newer {
			s.twin = s.seen
		}
	}
	if newer {
		s.seen = c
	}
	return twin
}

// claims is everything that is remembered of the store.
func (s *storeLease) claims() []Claim {
	var out []Claim
	if s.seen.Commits > 0 {
		out = append(out, s.seen)
	}
	for _, c := range s.ask.fellows {
		out = append(out, c)
	}
	if s.ask.nonce != 0 { // what was said before is no answer to that
		return out
	}
	if s.seen.Twin(s.twin) {
		out = append(out, s.twin)
	}
	for _, claims := range s.rumours {
		out = append(out, claims...)
	}
	return out
}

// rumour keeps what a fellow store says of the store and the store did not say itself: that it
// started otherwise. The store judges it by its own seal. After a plain restart it is no news; of a
// disk that was copied it shows the process on the other copy. A claim of an earlier boot counts only
// beside a later one: else the fellow has not heard of the restart. It reports whether there is
// something new. Callers hold l.mu.
func (s *storeLease) rumour(by string, claims []Claim) (news bool) {
	about := func(c Claim) bool { return c.Store == s.uuid && c.Commits > 0 && s.seen.Commits > 0 }
	heard := slices.ContainsFunc(claims, func(c Claim) bool { return about(c) && c.Boot >= s.seen.Boot })
	var strange []Claim
	for _, c := range claims {
		if about(c) && (c.Boot > s.seen.Boot || c.Twin(s.seen) || heard && c.Boot < s.seen.Boot) {
			c.By = "" // the store has not asked for it
			strange = append(strange, c)
		}
	}
	before := s.rumours[by]
	if len(strange) == 0 {
		delete(s.rumours, by)
		return false
	}
	if s.rumours == nil {
		s.rumours = map[string][]Claim{}
	}
	s.rumours[by] = strange
	return len(before) == 0
}

// fellows is what the session has seen of all stores but s. Callers hold l.mu.
func (l *Leases) fellows(s *storeLease) []Claim {
	var out []Claim
	for _, other := range l.now.Load().stores {
		if other != s && other.seen.Commits > 0 {
			out = append(out, other.seen)
			if other.seen.Twin(other.twin) {
				out = append(out, other.twin)
			}
		}
	}
	return out
}

// recall keeps what the store remembers of those that wait for it. Callers hold l.mu.
func (l *Leases) recall(by *storeLease, sent sentRenew, reply RenewReply) {
	for _, s := range l.now.Load().stores {
		if s != by && s.rumour(by.uuid, reply.Remembered) {
			s.wake() // once: two that wait for each other would never rest
		}
		if s == by || s.ask.nonce == 0 || sent.number <= s.ask.after {
			continue
		}
		for _, c := range reply.Remembered {
			if c.Store != s.uuid {
				continue
			}
			c.By = by.uuid
			if before, known := s.ask.fellows[c.By]; !known || before.Less(c) {
				s.ask.fellows[c.By] = c
				s.wake() // only for news: two that wait for each other would never rest
			}
		}
	}
}

// compare takes in that the store grants nothing yet, and has its fellows asked; again if
// more is known by now than the renewal brought. Callers hold l.mu.
func (l *Leases) compare(s *storeLease, sent sentRenew, reply RenewReply, fresh bool) (again bool) {
	if fresh {
		l.forget(s)
		s.restarted = true
	}
	if s.ask.nonce == reply.Nonce {
		return len(s.claims()) > sent.claims
	}
	s.ask = inquiry{nonce: reply.Nonce, after: l.made, fellows: map[string]Claim{}}
	for _, other := range l.now.Load().stores {
		if other != s {
			other.wake()
		}
	}
	return false
}
