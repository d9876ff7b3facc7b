package membership

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// The advice that goes into a log line.
const (
	checkKeys  = "--gossip-keys-file: each node needs the first key of the other, or neither has any; after a change SIGHUP reads it again"
	checkSeeds = "--gossip-join, --cluster and --gossip-keys-file, here and there"
)

// keyFaultPause is the time between two warnings of one view. While keys differ, every packet is a fault.
const keyFaultPause = 30 * time.Second

// keyFaultTexts are what memberlist 0.7 says, in its log or as a stream's error, when one side encrypts and
// the other cannot read it, or one does and the other does not.
var keyFaultTexts = []string{
	"Decrypt packet failed",
	"no installed keys could decrypt",
	"unsupported encryption version",
	"too small to decrypt",
	"cannot decrypt empty payload",
	"encryption is not configured",
	"encryption is configured but remote state is not encrypted",
}

func isKeyFault(text string) bool {
	return slices.ContainsFunc(keyFaultTexts, func(t string) bool { return strings.Contains(text, t) })
}

// named wraps an error of memberlist that comes of keys in ErrKeysDiffer, with what to check.
func named(err error) error {
	if err == nil || !isKeyFault(err.Error()) {
		return err
	}
	return fmt.Errorf("%w (check %s): %w", ErrKeysDiffer, checkKeys, err)
}

// keyFaults counts what could not be read, and says so from time to time.
type keyFaults struct {
	log  *slog.Logger
	keys *Keys

	mu     sync.Mutex // guards all below
	count  uint64
	warned time.Time // zero: never
	since  uint64    // faults since then
}

// note takes a line of memberlist's log, which ends in the other side's address.
func (f *keyFaults) note(text string, now time.Time) {
	f.mu.Lock()
	f.count++
	f.since++
	since, quiet := f.since, !f.warned.IsZero() && now.Sub(f.warned) < keyFaultPause
	if !quiet {
		f.warned, f.since = now, 0
	}
	f.mu.Unlock()
	if quiet {
		return
	}
	text, from, _ := strings.Cut(text, " from=")
	f.log.Warn(ErrKeysDiffer.Error()+": gossip that this node cannot read", "from", from, "times", since,
		"keys", f.keys.Names(), "reason", text, "check", checkKeys)
}

func (f *keyFaults) total() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}
