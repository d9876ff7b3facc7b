package membership

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
)

const (
	// DefaultBindAddr takes a free port on the loopback interface.
	DefaultBindAddr = "127.0.0.1:0"
	// DefaultKeepGone is how long dead and left members stay listed.
	DefaultKeepGone = 10 * time.Minute
	// DefaultRejoinInterval is the pause between attempts to join while the node is alone.
	DefaultRejoinInterval = 2 * time.Second

	// maxName in bytes keeps an alive message with full metadata and a full label inside one packet.
	maxName = 128
)

// Config describes one node's view. Name, ClusterID and Meta.Role have no default.
type Config struct {
	// Name of the node, unique in the cluster: 1 to 128 bytes of UTF-8 without a slash.
	Name string
	// ClusterID is the label of all packets and streams: 1 to 255 bytes. Nodes of different ids never mix.
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
	// SecretKey encrypts and authenticates the gossip: 16, 24 or 32 bytes, the same on all nodes. Empty: plain.
	SecretKey []byte
	// KeepGone is how long dead and left members stay listed. Zero: DefaultKeepGone.
	KeepGone time.Duration
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
	if c.KeepGone == 0 {
		c.KeepGone = DefaultKeepGone
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
	case c.ClusterID == "" || len(c.ClusterID) > memberlist.LabelMaxSize:
		return fmt.Errorf("cluster id of %d bytes, want 1 to %d: %w", len(c.ClusterID), memberlist.LabelMaxSize, ErrConfig)
	case !validName(c.Name):
		return fmt.Errorf("node name %q, want 1 to %d bytes without a slash: %w", c.Name, maxName, ErrConfig)
	case c.KeepGone < 0 || c.RejoinInterval < 0:
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

// memberlistConfig translates the addresses and the profile; the delegates are set by Start.
func (c Config) memberlistConfig() (*memberlist.Config, error) {
	mc, err := c.Profile.config()
	if err != nil {
		return nil, err
	}
	mc.Name, mc.Label, mc.SecretKey = c.Name, c.ClusterID, c.SecretKey
	mc.Logger = newStdLogger(c.Logger)
	// A restarted process may come back under another address (a new container, port 0). Its name is
	// free as soon as the old one is held dead; before that the newcomer is refused and tries again.
	mc.DeadNodeReclaimTime = time.Nanosecond

	ip, port, err := resolve(c.BindAddr)
	if err != nil {
		return nil, fmt.Errorf("bind address %q: %w: %w", c.BindAddr, ErrConfig, err)
	}
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = ip.String(), port, port
	if c.Advertise == "" {
		if ip.IsUnspecified() && ip.To4() == nil {
			return nil, fmt.Errorf("bind address %q needs an advertise address: %w", c.BindAddr, ErrConfig)
		}
		return mc, nil
	}
	adv := c.Advertise
	if _, _, err := net.SplitHostPort(adv); err != nil {
		adv = net.JoinHostPort(strings.Trim(adv, "[]"), "0")
	}
	advIP, advPort, err := resolve(adv)
	if err != nil {
		return nil, fmt.Errorf("advertise address %q: %w: %w", c.Advertise, ErrConfig, err)
	}
	if advIP.IsUnspecified() {
		return nil, fmt.Errorf("advertise address %q reaches nobody: %w", c.Advertise, ErrConfig)
	}
	if advPort != 0 && port == 0 {
		return nil, fmt.Errorf("advertise address %q has a port, bind address %q takes a free one: %w", c.Advertise, c.BindAddr, ErrConfig)
	}
	mc.AdvertiseAddr = advIP.String()
	if advPort != 0 {
		mc.AdvertisePort = advPort
	}
	return mc, nil
}

// resolve reads host:port; memberlist itself would take a host name it cannot parse for "any address".
func resolve(addr string) (net.IP, int, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, 0, fmt.Errorf("port %q: %w", portText, err)
	}
	if host == "" {
		return net.IPv4zero, int(port), nil
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip, int(port), nil
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil, 0, err
	}
	for _, ip := range ips {
		if ip.To4() != nil {
			return ip, int(port), nil
		}
	}
	return ips[0], int(port), nil
}
