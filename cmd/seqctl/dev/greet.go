package dev

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// greet prints the end points and something to try.
func (o *options) greet(w io.Writer, layout *localcluster.Layout, took time.Duration) {
	router := layout.Role(localcluster.RoleRouter)[0]
	kind, scheme := "in this process", "http"
	if o.processes {
		kind = "as processes"
	}
	if layout.Secured != nil {
		scheme = "https"
	}
	stores := fmt.Sprintf("%d stores", o.Stores)
	if o.Etcd.Given() {
		stores = "registers in etcd"
	}
	fmt.Fprintf(w, "cluster %s serves: %s, %d allocators, %d routers %s, ready after %s\n",
		layout.ClusterID, stores, o.Allocs, o.Routers, kind, ui.Duration(took))
	for _, set := range layout.Others {
		what := "as many stores and allocators"
		if set.Etcd.Given() {
			what = "as many allocators, below " + set.Etcd.Prefix + " in etcd"
		}
		fmt.Fprintf(w, "  Set %s beside it, cluster %s: %s; seqctl set show has who has what\n", set.Set, set.ClusterID, what)
	}
	fmt.Fprintf(w, "  gRPC   %s\n  HTTP   %s://%s\n  data   %s\n", router.Addr, scheme, router.HTTP, layout.Dir)
	if o.Etcd.Given() {
		fmt.Fprintf(w, "  etcd   %s, below %s\n", strings.Join(o.Etcd.Endpoints, ","), o.Etcd.Prefix)
	}
	if router.RESP != "" {
		fmt.Fprintf(w, "  RESP   %s\n", router.RESP)
	}
	if router.Console != "" {
		fmt.Fprintf(w, "  look   %s://%s/\n", scheme, router.Console)
	}
	if layout.Secured != nil {
		tellPeople(w, layout.Secured)
	}
	lead := "try:     "
	for _, line := range tries(router, layout.Secured) {
		fmt.Fprintf(w, "%s%s\n", lead, line)
		lead = "         "
	}
	what := "the next start"
	if o.Etcd.Given() {
		what = "etcd stays, and the next start"
	}
	fmt.Fprintf(w, "Ctrl-C stops it; %s goes on above every number handed out.\n", what)
}

// tellPeople prints the certificate or token that each of the two callers must present.
func tellPeople(w io.Writer, s *localcluster.Secured) {
	fmt.Fprintf(w, "  CA     %s\n", s.Caller.Files.CA)
	for _, p := range []localcluster.Person{s.Caller, s.Operator} {
		fmt.Fprintf(w, "  %s %s\n    certificate  %s, key %s\n    token        %s\n", p.Role, p.Name, p.Files.Cert, p.Files.Key, p.TokenFile)
	}
}

// tries are commands for a shell.
func tries(router localcluster.Node, s *localcluster.Secured) []string {
	seqctl, addr := quote(os.Args[0]), ""
	if router.Addr != ctl.DefaultAddr {
		addr = " --addr " + dialled(router.Addr)
	}
	const json = `curl -H 'Content-Type: application/json' -d '{"uid":42}' `
	if s == nil {
		return []string{seqctl + " next 42" + addr, json + "http://" + router.HTTP + "/v1/next"}
	}
	ca, token := quote(s.Caller.Files.CA), quote(s.Caller.TokenFile)
	host, port, _ := net.SplitHostPort(dialled(router.RESP))
	return []string{
		seqctl + " next 42" + addr + " --tls-ca " + ca + " --token-file " + token,
		seqctl + " status" + addr + " --tls-ca " + ca + " --token-file " + quote(s.Operator.TokenFile),
		seqctl + " next 42" + addr + " --tls-ca " + ca + " --tls-cert " + quote(s.Caller.Files.Cert) + " --tls-key " + quote(s.Caller.Files.Key),
		strings.Replace(json, "curl", "curl --cacert "+ca+` -H "Authorization: Bearer $(cat `+token+`)"`, 1) + "https://" + dialled(router.HTTP) + "/v1/next",
		`REDISCLI_AUTH="$(cat ` + token + `)" redis-cli -h ` + host + " -p " + port + " --tls --cacert " + ca + " INCR seq:42",
	}
}

// dialled returns the address by which a listener is reached on this machine.
func dialled(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}

// quote makes one word of a shell.
func quote(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("/._-+=:,@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
