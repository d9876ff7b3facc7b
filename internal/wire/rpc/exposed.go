package rpc

import (
	"log/slog"
	"net"
	"strings"
)

// Exposed returns the daemon's listeners that take plaintext from other machines. They are not on loopback,
// and either there is no TLS or AllowPlaintext lets plaintext in beside it.
func (t *TLS) Exposed(addrs ...string) (out []string) {
	if t != nil && t.plaintext == NoPlaintext {
		return nil
	}
	for _, addr := range addrs {
		if addr != "" && !onLoopback(addr) {
			out = append(out, addr)
		}
	}
	return out
}

// WarnExposed says in one line of the log at the start that a daemon is Exposed, if it is.
func (t *TLS) WarnExposed(log *slog.Logger, addrs ...string) {
	if open := t.Exposed(addrs...); len(open) > 0 {
		log.Warn("PLAINTEXT BEYOND THIS MACHINE: whoever is on the network reads and changes what passes; --tls-cert, --tls-key and --tls-ca mend it, see docs/security.md",
			"addrs", strings.Join(open, ","))
	}
}

// onLoopback tells whether only this machine reaches host:port.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
