package section

import (
	"errors"

	"github.com/seqsvr/seqsvr/seq"
)

// Line holds the keys of one call of which an index waits. Every later index of such a key waits
// behind it, so that the numbers of a key rise with the index. The takings of one call share a Line.
// The zero value is ready to use.
type Line struct {
	keys map[standing]queue // nil while no key waits
}

// queue holds the counts that wait for a key.
type queue struct {
	numbers uint64 // of all indices that have no answer: one step is asked for all
	err     error  // of an index before them
}

// standing is a key as sections know it: two texts of one key are one.
type standing struct {
	c   *Section
	uid seq.UID
}

// has reports whether an index of the key waits, or has failed.
func (l *Line) has(c *Section, uid seq.UID) bool {
	if l.keys == nil {
		return false
	}
	_, waits := l.keys[standing{c, uid}]
	return waits
}

// hold notes that an index of the key waits for so many numbers.
func (l *Line) hold(c *Section, uid seq.UID, numbers uint64) {
	if l.keys == nil {
		l.keys = make(map[standing]queue)
	}
	q := l.keys[standing{c, uid}]
	q.numbers += numbers
	l.keys[standing{c, uid}] = q
}

// left notes that an index of the key waits no more.
func (l *Line) left(c *Section, uid seq.UID, numbers uint64) {
	if q, waits := l.keys[standing{c, uid}]; waits {
		q.numbers -= numbers
		l.keys[standing{c, uid}] = q
	}
}

// numbers returns the count of numbers that the key waits for, or the count of this index if that is
// larger.
func (l *Line) numbers(c *Section, uid seq.UID, of uint64) uint64 {
	return max(l.keys[standing{c, uid}].numbers, of)
}

// ended notes the error of an index of the key. If the caller is to repeat the request, later
// indices get the error, too: the numbers of the repeated one would be above theirs.
func (l *Line) ended(c *Section, uid seq.UID, err error) {
	if !errors.Is(err, seq.ErrOverflow) {
		l.hold(c, uid, 0)
		q := l.keys[standing{c, uid}]
		q.err = err
		l.keys[standing{c, uid}] = q
	}
}

// failed returns the error of an earlier index of the key.
func (l *Line) failed(c *Section, uid seq.UID) error { return l.keys[standing{c, uid}].err }
