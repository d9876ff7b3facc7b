package membership

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// DefaultBindAddr takes a free port on the loopback interface.
	DefaultBindAddr = "127.0.0.1:0"
	// keepGone is the time that dead and left members stay listed.
	keepGone = 10 * time.Minute
	// DefaultRejoinInterval is the pause between attempts to join while the node is alone.
	DefaultRejoinInterval = 2 * time.Second

	// maxName in bytes keeps an alive message with full metadata and a full label inside one packet.
	maxName = 128
	// maxClusterID in bytes is what memberlist takes as a label.
	maxClusterID = 255
)

// Config describes one node's view. Name, ClusterID and Meta.Role have no default.
type Config struct {
	// Name of the node, unique in the cluster: 1 to 128 bytes of UTF-8 without a slash.
	Name string
	// ClusterID is the label of all packets and streams: 1 to 255 bytes. Nodes of different ids never mix.
	// Two clusters may have one id: Meta.Incarnation keeps them apart.
	ClusterID string
	// BindAddr is the host:port to gossip on, both TCP and UDP; port 0 takes a free one. Empty: DefaultBindAddr.
	BindAddr string
	// Advertise is the host or host:port others reach this node at. Empty: the bound address, or the
	// private address of the machine if that is 0.0.0.0. A port needs a fixed port in BindAddr.
	Advertise string
	// Profile of the gossip timings. Empty: ProfileFast.
	Profile Profile
	// Join lists the seeds as host:port. The node's own address among them is passed over.
	Join []string
	// Meta is what the node tells about itself. Name is taken from Config.Name; a zero Session is
	// replaced by a random one.
	Meta Meta
	// Keys encrypt and authenticate the gossip; the nodes must have the first key of each other. Nil: plain.
	Keys *Keys
	// RejoinInterval is the pause between attempts to join while alone. Zero: DefaultRejoinInterval.
	RejoinInterval time.Duration
	// Logger takes the view's and memberlist's messages. Nil: none.
	Logger *slog.Logger
}

// withDefaults fills the empty fields of a copy.
func (c Config) withDefaults() Config {
	if c.BindAddr == "" {
		c.BindAddr = DefaultBindAddr
	}
	if c.RejoinInterval == 0 {
		c.RejoinInterval = DefaultRejoinInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Meta.Name = c.Name
	return c
}

// validate checks what needs no look-up of names.
func (c Config) validate() error {
	switch {
	case c.ClusterID == "" || len(c.ClusterID) > maxClusterID:
		return fmt.Errorf("cluster id of %d bytes, want 1 to %d: %w", len(c.ClusterID), maxClusterID, ErrConfig)
	case !validName(c.Name):
		return fmt.Errorf("node name %q, want 1 to %d bytes without a slash: %w", c.Name, maxName, ErrConfig)
	case c.RejoinInterval < 0:
		return fmt.Errorf("negative duration: %w", ErrConfig)
	case !c.Meta.Role.Valid():
		return fmt.Errorf("role %q: %w", c.Meta.Role, ErrUnknownRole)
	}
	if err := validSeeds(c.Join); err != nil {
		return err
	}
	return c.Meta.fits()
}

func validSeeds(addrs []string) error {
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("seed %q: %w: %w", a, ErrConfig, err)
		}
	}
	return nil
}

func validName(s string) bool {
	return s != "" && len(s) <= maxName && utf8.ValidString(s) && !strings.Contains(s, "/")
}
