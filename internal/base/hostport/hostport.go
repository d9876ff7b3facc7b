// Package hostport tells addresses that can work from those that cannot, before anything is
// started with them.
//
// What belongs here: host:port as text. What does not: looking names up, and connecting.
package hostport

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Dial returns an error for an address that no other process can reach: one without a host,
// of all interfaces such as 0.0.0.0, or without a port from 1 to 65535.
func Dial(addr string) error {
	host, port, err := split(addr)
	switch {
	case err != nil:
		return err
	case host == "":
		return expected(addr, "it has no host")
	case everywhere(host):
		return expected(addr, host+" is every interface of a machine, and reaches nobody from another one")
	case port == 0:
		return expected(addr, "port 0 is none to connect to")
	}
	return nil
}

// Listen returns an error for an address that nothing can listen on. No host means all
// interfaces, and port 0 one that is free.
func Listen(addr string) error {
	_, _, err := split(addr)
	return err
}

// Told returns an error if others would be told an address that does not reach this process:
// advertise or, if that is empty, listen, whose port may be 0.
func Told(listen, advertise string) error {
	if advertise != "" {
		return Dial(advertise)
	}
	host, _, err := split(listen)
	if err == nil && (host == "" || everywhere(host)) {
		return fmt.Errorf("%q is every interface of this machine: expected an address to advertise beside it, that others reach", listen)
	}
	return err
}

// DialAll returns the first error of Dial, with the flag of the addresses.
func DialAll(flag string, addrs []string) error {
	for _, addr := range addrs {
		if err := Dial(addr); err != nil {
			return fmt.Errorf("%s %w", flag, err)
		}
	}
	return nil
}

func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

func split(addr string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(addr)
	var reason *net.AddrError
	if errors.As(err, &reason) {
		return "", 0, expected(addr, reason.Err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	switch {
	case strings.ContainsAny(host, "/@ "):
		return "", 0, expected(addr, "a scheme or a path is no part of it")
	case text == "":
		return "", 0, expected(addr, "it has no port")
	case err != nil:
		return "", 0, expected(addr, fmt.Sprintf("port %q is no number from 0 to 65535", text))
	}
	return host, uint16(n), nil
}

func expected(addr, but string) error { return fmt.Errorf("%q: expected host:port, and %s", addr, but) }
