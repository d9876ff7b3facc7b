// Package browser keeps web pages away from HTTP listeners. A browser sends requests to every
// address that its machine reaches, for pages of all sites.
package browser

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Names are the host names of a listener, beside IP addresses and localhost. A page that points a
// name of its own at the listener (DNS rebinding) sends that name. The zero Names has no others.
type Names struct {
	flag   string // that sets more
	listen string // the host listened on; pages of it are not let in
	known  []string
}

// NewNames returns the given names and the host of the address listened on. Errors name the flag.
func NewNames(flag, listen string, names []string) Names {
	return Names{flag, nameOf(listen), names}
}

// CheckNames returns an error for the first name that no request can be addressed to.
func CheckNames(names []string) error {
	for _, name := range names {
		odd := func(c rune) bool {
			return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
		}
		if name == "" || strings.ContainsFunc(name, odd) {
			return fmt.Errorf("%q: expected a host name such as router.example.net, without scheme and port", name)
		}
	}
	return nil
}

// Error is a request that a listener does not answer.
type Error struct {
	Status int
	Code   string
	why    string
}

// Error says what was wrong and what was expected.
func (e *Error) Error() string { return e.why }

// CheckHost returns an *Error for a request that is addressed to another name. It is enough where a
// request changes nothing and answers stay within their origin, and lets a proxy name another host
// than the page has.
func (n Names) CheckHost(r *http.Request) error {
	if n.addressed(r.Host) {
		return nil
	}
	return &Error{http.StatusMisdirectedRequest, "MISDIRECTED",
		fmt.Sprintf("addressed to %.100q: expected an IP address, localhost or a name in --%s", r.Host, n.flag)}
}

// Check returns an *Error for a request that is addressed to another name, or that a page of
// another origin sends.
func (n Names) Check(r *http.Request) error {
	if err := n.CheckHost(r); err != nil {
		return err
	}
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !n.origin(origins[0], r.Host) {
		return forbidden(fmt.Sprintf("sent for a web page of origin %.100q: expected no Origin, or one whose host is in --%s", strings.Join(origins, ", "), n.flag))
	}
	return nil
}

func forbidden(why string) *Error { return &Error{http.StatusForbidden, "FORBIDDEN", why} }

// addressed reports whether a request is for this listener. HTTP/1.0 may lack a host, and no
// browser sends it so.
func (n Names) addressed(host string) bool {
	name := nameOf(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return host == "" || strings.EqualFold(name, "localhost") || strings.EqualFold(name, n.listen) || n.has(name)
}

func (n Names) has(name string) bool {
	return slices.ContainsFunc(n.known, func(known string) bool { return strings.EqualFold(name, nameOf(known)) })
}

// origin reports whether pages of an origin may send requests. Allowed are the pages of this listener and
// the pages of the known names.
func (n Names) origin(origin, host string) bool {
	from, err := url.Parse(origin)
	return err == nil && from.Host != "" && (strings.EqualFold(from.Host, host) || n.has(nameOf(from.Host)))
}

// nameOf is a host without its port, brackets and last dot.
func nameOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

// CheckSite returns an *Error for a request that a browser says to send for a page of another site.
// Browsers say so over TLS and on loopback alone.
func CheckSite(r *http.Request) error {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		return forbidden(fmt.Sprintf("sent for a web page of another site (Sec-Fetch-Site %.40q): numbers are not for pages", site))
	}
}

// javaAccept begins what java.net.HttpURLConnection accepts, which is no browser.
const javaAccept = "text/html, image/gif, image/jpeg, *"

// CheckProgram returns an *Error for a request that has a header of browsers. For a GET that takes
// something: every page can have a browser send one, by an image for example.
func CheckProgram(r *http.Request) error {
	for name, values := range r.Header {
		mark := strings.HasPrefix(name, "Sec-") || name == "Referer" || name == "Origin" || name == "Accept-Language"
		if name == "Accept" {
			mark = slices.ContainsFunc(values, func(v string) bool {
				return strings.Contains(strings.ToLower(v), "image/") && !strings.HasPrefix(v, javaAccept)
			})
		}
		if mark {
			return forbidden(fmt.Sprintf("%s is sent by browsers, and this path takes a number by GET: expected a program, or POST below /v1", name))
		}
	}
	return nil
}
