package daemon

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

func (c *Common) authFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.authMode, "auth", string(auth.Off), "off: whoever reaches a port may use it; accept: log and count the calls that require would refuse; require: roles and grants are needed, see docs/security.md")
	fs.StringVar(&c.policyFile, "policy", "", "YAML `file` of principals with tokens and grants (seqctl auth); read again when it changes and at SIGHUP; empty: none")
	fs.StringVar(&c.plaintext, "tls-plaintext", string(rpc.NoPlaintext), "on the way to TLS: accept plaintext beside it on what is listened on, or dial it as well; no: TLS alone where --tls-cert is given")
}

// OpenAuth makes Guard, for a daemon of that cluster and role, and of that name if it is
// known, after Open. ErrUsage.
func (c *Common) OpenAuth(own auth.Identity) error {
	cluster := own.Cluster
	mode, err := auth.ParseMode(c.authMode)
	if err != nil {
		return Usage(fmt.Errorf("--auth: %w", err))
	}
	plaintext, err := rpc.ParsePlaintext(c.plaintext)
	if err != nil {
		return Usage(fmt.Errorf("--tls-plaintext: %w", err))
	}
	switch {
	case plaintext != rpc.NoPlaintext && c.TLS == nil:
		return Usage(fmt.Errorf("--tls-plaintext %s: expected --tls-cert beside it, without TLS everything is plaintext", plaintext))
	case mode == auth.Off && c.policyFile != "":
		return Usage(fmt.Errorf("--policy: expected --auth accept or require beside it"))
	case mode != auth.Off && cluster == "":
		return Usage(fmt.Errorf("--auth %s: expected --cluster, of which certificates must be", mode))
	}
	if c.TLS != nil {
		c.TLS.AllowPlaintext(plaintext)
	}
	if mode == auth.Off {
		return nil
	}
	if c.TLSFiles.Key != "" {
		if err := auth.CheckPrivate(c.TLSFiles.Key); err != nil {
			return Usage(fmt.Errorf("--tls-key: %w", err))
		}
	}
	c.TLS.Identify(cluster, mode == auth.Require)
	if err := c.TLS.Expect(own); err != nil && mode == auth.Require {
		return Usage(fmt.Errorf("--tls-cert: %w", err))
	} else if err != nil {
		c.Logger.Warn("this daemon would be refused for its certificate", "error", err)
	}
	c.Guard, err = auth.New(auth.Config{Mode: mode, Cluster: cluster, PolicyFile: c.policyFile, Logger: c.Logger})
	c.TLS.TrustSets(c.Guard.Takes)
	return Usage(err)
}
