package ctl

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// Other returns the options for a further cluster, after Check. The text is the name of its context, or a
// host:port that uses the flags of the first cluster. A context's settings apply to its own cluster only.
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
