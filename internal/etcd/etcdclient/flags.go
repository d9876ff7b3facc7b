package etcdclient

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultLease is the lease of an AllocSvr on etcd where none was asked for: an election there takes
// a second or two, in which nothing is renewed.
const DefaultLease = 3 * time.Second

// Flags are the flags of a process that uses etcd.
type Flags struct {
	Endpoints    []string
	Prefix       string // of all keys
	TLS          rpc.TLSFiles
	User         string
	PasswordFile string
	MinVersion   string
}

// AddTo adds them.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.Endpoints, "etcd", nil, "client `addresses` of an etcd that keeps the registers in place of StoreSvr, host:port; empty: none")
	fs.StringVar(&f.Prefix, "etcd-prefix", "/seqsvr", "`prefix` of all keys in etcd")
	fs.StringVar(&f.TLS.CA, "etcd-ca", "", "PEM `file` of the CAs of etcd's certificates; empty: plaintext to etcd")
	fs.StringVar(&f.TLS.Cert, "etcd-cert", "", "PEM `file` of a certificate to show to etcd; empty: none")
	fs.StringVar(&f.TLS.Key, "etcd-key", "", "PEM `file` of the key of --etcd-cert; empty: none")
	fs.StringVar(&f.User, "etcd-user", "", "`name` of the user of etcd; empty: none, or as the certificate says")
	fs.StringVar(&f.PasswordFile, "etcd-password-file", "", "`file` with the password of --etcd-user; empty: none")
	fs.StringVar(&f.MinVersion, "etcd-min-version", "", "oldest `version` of etcd to use, for those who know why an older one will do; empty: "+MinVersion+", and of 3.6 "+MinVersion36)
}

// Given says whether there is an etcd.
func (f *Flags) Given() bool { return len(f.Endpoints) > 0 }

// Requirement is what etcd must be.
func (f *Flags) Requirement() Requirement {
	return Requirement{MinVersion: f.MinVersion}
}

// Arguments are the flags that say the same, for a process that is started.
func (f *Flags) Arguments() []string {
	args := []string{"--etcd", strings.Join(f.Endpoints, ","), "--etcd-prefix", f.Prefix}
	for _, flag := range []struct{ name, value string }{
		{"--etcd-ca", f.TLS.CA}, {"--etcd-cert", f.TLS.Cert}, {"--etcd-key", f.TLS.Key},
		{"--etcd-user", f.User}, {"--etcd-password-file", f.PasswordFile}, {"--etcd-min-version", f.MinVersion},
	} {
		if flag.value != "" {
			args = append(args, flag.name, flag.value)
		}
	}
	return args
}

// Config reads the files that the flags name: rpc.ErrTLS, seq.ErrBadArgument.
func (f *Flags) Config(log *slog.Logger) (Config, error) {
	cfg := Config{Endpoints: f.Endpoints, User: f.User}
	if err := hostport.DialAll("--etcd", f.Endpoints); err != nil {
		return cfg, fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	tls, err := rpc.NewTLS(f.TLS, log)
	if err != nil {
		return cfg, fmt.Errorf("--etcd-ca, --etcd-cert and --etcd-key: %w", err)
	}
	if tls != nil {
		cfg.Creds = tls.Creds()
	}
	if f.PasswordFile != "" {
		text, err := os.ReadFile(f.PasswordFile)
		if err != nil {
			return cfg, fmt.Errorf("%w: --etcd-password-file: %w", seq.ErrBadArgument, err)
		}
		cfg.Password = strings.TrimSpace(string(text))
	}
	return cfg, nil
}
