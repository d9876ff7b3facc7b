package ctl

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// Other is how a further cluster is reached, after Check: by the name of its context, or by host:port
// with the same flags as the first one. What a context keeps is of its own cluster alone.
func (o *Options) Other(text string) (*Options, error) {
	of := &Options{Timeout: o.Timeout, connection: o.connection, output: o.output}
	if strings.Contains(text, ":") {
		if o.inContext {
			return nil, daemon.Usage(fmt.Errorf("%q: expected the name of a context: the one in use has files of its own cluster (seqctl context add)", text))
		}
		of.Addrs = []string{text}
	} else {
		all, _, err := loadContexts()
		if err != nil {
			return nil, daemon.Usage(err)
		}
		if of.connection, err = all.find(text); err != nil {
			return nil, daemon.Usage(err)
		}
	}
	var err error
	if of.dial, err = of.check(); err != nil {
		return nil, err
	}
	of.Addr, of.found = of.Addrs[0], len(of.Addrs) == 1
	return of, nil
}
