package load

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/seqsvr/seqsvr/seq"
)

// Dist names the distribution of the calls over the UIDs.
type Dist string

// The distributions.
const (
	Uniform Dist = "uniform" // all as often
	Zipf    Dist = "zipf"    // the k-th most often called with weight 1/k^1.1
	Hot     Dist = "hot"     // nine of ten calls go to one UID of a thousand (at least one)
)

const (
	zipfExponent = 1.1
	hotShare     = 0.9
	hotPart      = 1000
)

// ParseDist reads a name; ErrDist for an unknown one.
func ParseDist(text string) (Dist, error) {
	switch d := Dist(text); d {
	case Uniform, Zipf, Hot:
		return d, nil
	}
	return "", fmt.Errorf("%w %q: expected uniform, zipf or hot", ErrDist, text)
}

// Bounds of the number of draws that are made before a run.
const (
	leastDraws = 1 << 16
	mostDraws  = 1 << 24
)

// Users are UIDs drawn before the run, so that drawing costs nothing while it runs.
// Each caller goes through all of them from a place of its own. Single draws where all
// UIDs are called alike are the exception: a multiplication or two costs less than
// memory that no cache holds.
type Users struct {
	draws   []seq.UID // len is a power of two
	callers int
	cfg     UserConfig
	uids    uint64
	alike   bool // Uniform
}

// UserConfig says which UIDs are called.
type UserConfig struct {
	UIDs    int64  // how many, 1 to MaxUIDs
	First   uint64 // the lowest, where they are consecutive
	Scatter bool   // random 64-bit UIDs in place of consecutive ones, always the same
	Dist    Dist
	Callers int // at least 1
	Longest int // of the lists that Batch gives, at least 1
	Seed    uint64
}

// NewUsers draws. ErrConfig or ErrDist for what cannot work.
func NewUsers(cfg UserConfig) (*Users, error) {
	if cfg.UIDs < 1 || cfg.UIDs > MaxUIDs {
		return nil, fmt.Errorf("%w: %d uids, expected 1 to %d", ErrConfig, cfg.UIDs, int64(MaxUIDs))
	}
	if cfg.Callers < 1 || cfg.Longest < 1 || cfg.Longest > leastDraws {
		return nil, fmt.Errorf("%w: %d callers, lists of %d uids, expected at least 1 and lists of at most %d", ErrConfig, cfg.Callers, cfg.Longest, leastDraws)
	}
	if cfg.First > math.MaxUint64-uint64(cfg.UIDs-1) {
		return nil, fmt.Errorf("%w: %d uids from %d on pass 2^64-1", ErrConfig, cfg.UIDs, cfg.First)
	}
	size := leastDraws
	for int64(size) < 2*cfg.UIDs && size < mostDraws {
		size *= 2
	}
	rank, err := ranks(cfg.Dist, uint64(cfg.UIDs), rand.New(rand.NewPCG(cfg.Seed, 1)))
	if err != nil {
		return nil, err
	}
	u := &Users{draws: make([]seq.UID, size), callers: cfg.Callers, cfg: cfg, uids: uint64(cfg.UIDs), alike: cfg.Dist == Uniform}
	for i := range u.draws {
		u.draws[i] = uidOf(rank(), &u.cfg)
	}
	return u, nil
}

// uidOf is the UID of a rank.
func uidOf(rank uint64, cfg *UserConfig) seq.UID {
	if !cfg.Scatter {
		return seq.UID(cfg.First + rank)
	}
	return seq.UID(mix((cfg.First + rank + 1) * weyl)) // one to one
}

// weyl is the step of splitmix64, and mix what it does to a state.
const weyl = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ranks draws which of n UIDs, 0 to n-1, is next.
func ranks(d Dist, n uint64, r *rand.Rand) (func() uint64, error) {
	switch d {
	case Uniform:
		return func() uint64 { return r.Uint64N(n) }, nil
	case Zipf:
		return rand.NewZipf(r, zipfExponent, 1, n-1).Uint64, nil
	case Hot:
		few := max(n/hotPart, 1)
		return func() uint64 {
			if r.Float64() < hotShare {
				return r.Uint64N(few)
			}
			return r.Uint64N(n)
		}, nil
	}
	return nil, fmt.Errorf("%w %q: expected uniform, zipf or hot", ErrDist, string(d))
}

// Draw is one caller's way through the draws. For one goroutine.
type Draw struct {
	users *Users
	at    int
	state uint64   // of splitmix64
	_     [40]byte // callers of different processors share no cache line
}

// Caller gives the draws to a caller, 0 to Callers-1.
func (u *Users) Caller(id int) Draw {
	return Draw{users: u, at: len(u.draws) / u.callers * id, state: mix(u.cfg.Seed + uint64(id)*weyl)}
}

// One is the next UID.
func (d *Draw) One() seq.UID {
	if u := d.users; u.alike {
		d.state += weyl
		rank, _ := bits.Mul64(mix(d.state), u.uids)
		return uidOf(rank, &u.cfg)
	}
	uid := d.users.draws[d.at&(len(d.users.draws)-1)]
	d.at++
	return uid
}

// Batch is the next n UIDs, n at most UserConfig.Longest. It must not be changed.
func (d *Draw) Batch(n int) []seq.UID {
	at := d.at & (len(d.users.draws) - 1)
	if at+n > len(d.users.draws) {
		at = 0
	}
	d.at = at + n
	return d.users.draws[at : at+n]
}
