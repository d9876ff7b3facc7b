package survey

import (
	"slices"
	"strings"
)

// SecurityHint is what to look at if the connection came to be and its two ends did not
// agree on TLS; "" if that is not the reason. It has no colon, which LastReason goes by.
// The end that closes first decides which error the other end sees, so some are only likely.
func SecurityHint(reason string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(reason, p) })
	}
	switch {
	case has("certificate required", "bad certificate", "unknown certificate authority"):
		return "it wants a certificate of its CA, --tls-cert and --tls-key"
	case has("expired certificate"): // as it says of ours
		return "the certificate in --tls-cert has expired or does not hold yet, seqctl auth cert makes another"
	case has("current time"): // as we say of its own
		return "its certificate has expired or does not hold yet, or the clock here is wrong"
	case has("expected cluster"):
		return "it is of another cluster than --tls-cluster says"
	case has("expected role"):
		return "no AllocSvr, router or store is there, by its certificate"
	case has("certificate", "x509"):
		return "its certificate is not one of the CA in --tls-ca"
	case has("does not look like a TLS handshake"):
		return "it speaks no TLS, leave --tls-ca out"
	case has("EOF", "connection reset", "broken pipe"):
		return "it closed the connection; does it want TLS, or a certificate of another CA? --tls-ca, --tls-cert and --tls-key"
	}
	return ""
}

// LastReason is the end of a chain such as "connection error: desc = "transport:
// Error while dialing: dial tcp ...: connect: connection refused"".
func LastReason(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, ": "); at >= 0 {
		text = text[at+2:]
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(text, `"`), `"`), `\"`, `"`)
}
