package quorum

// inquiry is what the session has gathered for a store that has restarted and does not
// vote before its disk was compared with what its fellow stores remember.
type inquiry struct {
	nonce uint64 // of the store's start; 0: it votes
	// after is how many renewals had been made when the nonce came: what a fellow said to one
	// of those may be older than the disk that the store had.
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
		if s.uuid == c.Store && s.seen.Less(c) {
			s.seen = c
		}
	}
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
	return out
}

// fellows is what the session has seen of all stores but s. Callers hold l.mu.
func (l *Leases) fellows(s *storeLease) []Claim {
	var out []Claim
	for _, other := range l.now.Load().stores {
		if other != s && other.seen.Commits > 0 {
			out = append(out, other.seen)
		}
	}
	return out
}

// recall keeps what the store remembers of those that wait for it. Callers hold l.mu.
func (l *Leases) recall(by *storeLease, sent sentRenew, reply RenewReply) {
	for _, s := range l.now.Load().stores {
		if s == by || s.ask.nonce == 0 || sent.number <= s.ask.after {
			continue
		}
		for _, c := range reply.Remembered {
			if c.Store != s.uuid {
				continue
			}
			c.By = by.uuid
			if before, known := s.ask.fellows[c.By]; !known || before != c {
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
