package membership

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// View does not exist on a system without sockets, which is what the simulator of
// tests/sim is built for: nothing there rests on gossip.
type View struct{}

// Start is ErrConfig.
func Start(cfg Config) (*View, error) {
	return nil, fmt.Errorf("start membership of %q: %w: no sockets on this system", cfg.Name, ErrConfig)
}

// Addr is empty.
func (v *View) Addr() string { return "" }

// Members is empty.
func (v *View) Members() []Member { return nil }

// HighestTableVersion is 0.
func (v *View) HighestTableVersion() uint64 { return 0 }

// LaterEra is false.
func (v *View) LaterEra() bool { return false }

// SetTableVersion does nothing.
func (v *View) SetTableVersion(uint64) {}

// SetIncarnation does nothing.
func (v *View) SetIncarnation(seq.Incarnation) {}

// Strangers is 0.
func (v *View) Strangers() int { return 0 }

// Leave does nothing.
func (v *View) Leave(context.Context) error { return nil }

// Close does nothing.
func (v *View) Close() error { return nil }

// KeyFaults is 0.
func (v *View) KeyFaults() uint64 { return 0 }

// keyring does not exist either.
type keyring struct{}

func newKeyring([][]byte) (*keyring, error) { return &keyring{}, nil }

func (*keyring) replace([][]byte) {}
