//go:build !wasip1

package membership

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
)

// memberlist's limits must cover the limits of this package.
const (
	_ = uint(memberlist.LabelMaxSize - maxClusterID)
	_ = uint(memberlist.MetaMaxSize - 1 - MaxMetaSize)
)

// The measured values of ProfileFast.
const (
	fastProbeInterval    = 100 * time.Millisecond
	fastProbeTimeout     = 50 * time.Millisecond
	fastGossipInterval   = 20 * time.Millisecond
	fastSuspicionMult    = 4
	fastSuspicionMaxMult = 6

	// fastStreamTimeout bounds dialling and state exchange, not detection (the stream ping has the
	// probe's own deadline). memberlist's 10 s would hold up Close behind a seed that drops packets.
	fastStreamTimeout = 2 * time.Second
)

// config returns memberlist's timings for the profile.
func (p Profile) config() (*memberlist.Config, error) {
	p, err := ParseProfile(string(p))
	if err != nil {
		return nil, err
	}
	switch p {
	case ProfileLAN:
		return memberlist.DefaultLANConfig(), nil
	case ProfileWAN:
		return memberlist.DefaultWANConfig(), nil
	}
	c := memberlist.DefaultLANConfig()
	c.ProbeInterval = fastProbeInterval
	c.ProbeTimeout = fastProbeTimeout
	c.GossipInterval = fastGossipInterval
	c.SuspicionMult = fastSuspicionMult
	c.SuspicionMaxTimeoutMult = fastSuspicionMaxMult
	c.TCPTimeout = fastStreamTimeout
	return c, nil
}

// memberlistConfig translates the addresses and the profile; the delegates are set by Start.
func (c Config) memberlistConfig(faults *keyFaults) (*memberlist.Config, error) {
	mc, err := c.Profile.config()
	if err != nil {
		return nil, err
	}
	mc.Name, mc.Label = c.Name, c.ClusterID
	if c.Keys != nil {
		mc.Keyring = c.Keys.ring.Keyring
	}
	mc.Logger = newStdLogger(c.Logger, faults)
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
