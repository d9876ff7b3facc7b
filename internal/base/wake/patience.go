package wake

import "time"

const (
	// usuals is the factor by which an answer must be later than the usual one before its peer counts as silent.
	usuals = 3
	// mostFalse is the number of false suspicions in a minute after which a peer is given twice as long.
	mostFalse = 3
	falseFor  = time.Minute
)

// Patience says how long a peer has to answer before it counts as silent: Least, three times what is usual, or
// what is usual and four times the usual deviation, whichever is more. It is twice as long after each three
// false suspicions within a minute. The averages move as in RFC 6298, which has timeouts of TCP. Patience is
// pure: time comes in as an argument. The caller serialises.
type Patience struct {
	Least time.Duration

	usual, deviation time.Duration   // of answers; they move by an eighth and a quarter of the difference
	wrong            []time.Duration // when the peer was silent and was heard again, in the last minute
}

// Answered notes that an answer took so long.
func (p *Patience) Answered(took time.Duration) {
	if p.usual == 0 {
		p.usual, p.deviation = took, took/2
		return
	}
	p.deviation += ((took - p.usual).Abs() - p.deviation) / 4
	p.usual += (took - p.usual) / 8
}

// Wrong notes that the peer had counted as silent and was heard again.
func (p *Patience) Wrong(now time.Duration) { p.wrong = append(p.wrong, now) }

// At returns how long the peer has.
func (p *Patience) At(now time.Duration) time.Duration {
	for len(p.wrong) > 0 && now-p.wrong[0] >= falseFor {
		p.wrong = p.wrong[1:]
	}
	return max(p.Least, usuals*p.usual, p.usual+4*p.deviation) << min(len(p.wrong)/mostFalse, 8)
}
