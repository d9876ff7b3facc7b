package wake

import "time"

const (
	// usuals is the factor by which an answer must be later than usual before its peer counts as silent.
	usuals = 3
	// mostFalse is the number of false suspicions in a minute after which a peer is given twice as long.
	mostFalse = 3
	falseFor  = time.Minute
)

// Patience says how long a peer has to answer before it counts as silent: Least, or three times what is
// usual. It is twice as long after each three false suspicions within a minute. It is pure: time comes in as
// an argument. The caller serialises.
type Patience struct {
	Least time.Duration

	usual time.Duration   // the longest answer took so long; it fades with each shorter answer
	wrong []time.Duration // when the peer was silent and was heard again, in the last minute
}

// Answered notes that an answer took so long.
func (p *Patience) Answered(took time.Duration) { p.usual = max(took, p.usual-p.usual/32) }

// Wrong notes that the peer had counted as silent and was heard again.
func (p *Patience) Wrong(now time.Duration) { p.wrong = append(p.wrong, now) }

// At returns how long the peer has.
func (p *Patience) At(now time.Duration) time.Duration {
	for len(p.wrong) > 0 && now-p.wrong[0] >= falseFor {
		p.wrong = p.wrong[1:]
	}
	return max(p.Least, usuals*p.usual) << min(len(p.wrong)/mostFalse, 8)
}
