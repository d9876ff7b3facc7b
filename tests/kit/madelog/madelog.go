// Package madelog makes message logs, as internal/ops/msglog reads them, for tests and benchmarks: the same
// arguments give the same bytes on every machine.
package madelog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"math/rand/v2"
	"sort"

	"github.com/seqsvr/seqsvr/internal/ops/msglog"
)

// ErrSize is a log that Generate cannot make.
var ErrSize = errors.New("impossible size")

const (
	// maxUsers keeps the table of weights, 8 bytes a user, within 128 MiB.
	maxUsers = 1 << 24
	// firstSecond is when a made log begins: 2024-01-01T00:00:00Z.
	firstSecond = 1704067200
	// maxPause is the longest time between two messages of a made log, in seconds.
	maxPause = 120
)

// Generate writes a made log to w: messages among users, numbered from 1, in
// order of time. Senders are all alike; the k-th most popular recipient gets a
// share of messages in proportion to 1/k (Zipf), and which user that is depends
// on the seed. No user writes to itself. The same arguments give the same bytes
// everywhere: there is no floating point in it.
//
// users must be 2 to 2^24 and messages not negative, otherwise ErrSize; other
// errors are of w, and what was written then is of no use.
func Generate(w io.Writer, seed uint64, users, messages int) error {
	if users < 2 || users > maxUsers || messages < 0 {
		return fmt.Errorf("generate a message log of %d users and %d messages: %w: expected 2 to %d users, 0 or more messages",
			users, messages, ErrSize, maxUsers)
	}
	random := source{rand.NewPCG(seed, 0)}
	popular := newZipf(users)
	uidOfRank := random.permutation(users)
	out := bufio.NewWriter(w)
	message := msglog.Message{Seconds: firstSecond}
	for range messages {
		message.Seconds += int64(random.below(maxPause + 1))
		message.Recipient = uidOfRank[popular.rank(&random)]
		message.Sender = 1 + random.below(uint64(users)-1)
		if message.Sender >= message.Recipient {
			message.Sender++
		}
		if _, err := fmt.Fprintln(out, message); err != nil {
			return fmt.Errorf("generate a message log: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("generate a message log: %w", err)
	}
	return nil
}

// source draws numbers by rules of its own. The rules of math/rand may change; its generator PCG may not.
type source struct{ *rand.PCG }

// below is uniform in [0, n), with a bias of at most n/2^64.
func (s *source) below(n uint64) uint64 {
	high, _ := bits.Mul64(s.Uint64(), n)
	return high
}

// permutation is the numbers 1 to n, shuffled.
func (s *source) permutation(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i) + 1
	}
	for i := n - 1; i > 0; i-- {
		j := s.below(uint64(i) + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// zipf holds the running sums of the weights of the ranks 0, 1, 2...: rank k
// weighs 2^40/(k+1), so the sum over 2^24 ranks stays below 2^45.
type zipf []uint64

func newZipf(n int) zipf {
	sums := make(zipf, n)
	var sum uint64
	for k := range sums {
		sum += (1 << 40) / uint64(k+1)
		sums[k] = sum
	}
	return sums
}

func (z zipf) rank(random *source) int {
	at := random.below(z[len(z)-1])
	return sort.Search(len(z), func(k int) bool { return z[k] > at })
}
