package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/base/ui"
)

// ErrUnknownVariable is an environment variable that begins as ours do and is none. It is
// most likely misspelt, and what it should set would silently stay as it is.
var ErrUnknownVariable = errors.New("unknown variable")

// variables are the names of all flags of all daemons and of seqctl that a variable can set: one
// environment may be made for several of them. Tests hold the daemons to it.
var variables = variablesOf(`
	admin advertise allocs any-zones attempt-timeout auth cluster config console console-hosts data-dir datacenter
	datacenter-id etcd etcd-ca etcd-cert etcd-key etcd-min-version etcd-password-file etcd-prefix etcd-user expect-allocs
	gossip-join gossip-keys-file gossip-listen gossip-profile http http-hosts http-max-body id-audit id-audit-bytes id-audit-files
	ids-fallback ids-fallback-after ids-fallback-window if-missing join key-hash leaf learner lease listen log-format log-level
	max-in-work max-jump max-lease max-step max-stream-waits members memory mode name namespaces near-full pid-file policy pprof
	r regions regions-ca regions-token-file resp resp-max-conns resp-max-pipeline sections space step stores supervise
	timeout tls-ca tls-cert tls-key tls-plaintext trace-ca trace-endpoint trace-sample uid-memory unready-after w weight
	suspect-after tickets window worker-id worker-window zone zones
	addr context tls-cluster token-file`)

// others are read from the environment, and no flags.
var others = []string{"SEQ_SUPERVISED_SECRET", "SEQ_ID_DRILL_ROUNDS", "SEQ_SET_DRILL", "SEQ_CALL_SECONDS"}

// foreign are the variables that Kubernetes and Docker make for a service or container whose
// name begins with "seq".
var foreign = regexp.MustCompile(`^SEQ_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

func variablesOf(flags string) []string {
	var names []string
	for flag := range strings.FieldsSeq(flags) {
		names = append(names, EnvName(flag))
	}
	return names
}

// CheckEnvironment returns ErrUnknownVariable for the variables in environ, as of
// os.Environ, that begin with SEQ_ and set nothing. Names that begin with SEQ_X_ or
// SEQ_TEST_ are left to others.
func CheckEnvironment(environ []string) error {
	var errs []error
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, "SEQ_"), strings.HasPrefix(name, "SEQ_X_"), strings.HasPrefix(name, "SEQ_TEST_"),
			slices.Contains(variables, name), slices.Contains(others, name), foreign.MatchString(name):
			continue
		}
		err := &Error{Kind: ErrUnknownVariable, Source: "environment " + name, Wrong: "it sets nothing", Want: "the variable of a flag, or a name that begins with SEQ_X_"}
		if near := ui.Closest(name, variables); near != "" {
			err.Want = fmt.Sprintf("%s, or a name that begins with SEQ_X_ for what is not of seqsvr", near)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// HasVariable reports whether CheckEnvironment knows the variable of a flag.
func HasVariable(flag string) bool { return slices.Contains(variables, EnvName(flag)) }
