package ctl

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// connection holds the settings to reach a cluster, from flags or from a context. It has paths and never a
// secret.
type connection struct {
	Addrs     []string `yaml:"addrs" json:"addrs"`
	CA        string   `yaml:"tls-ca,omitempty" json:"tls_ca"`
	Cert      string   `yaml:"tls-cert,omitempty" json:"tls_cert"`
	Key       string   `yaml:"tls-key,omitempty" json:"tls_key"`
	Cluster   string   `yaml:"tls-cluster,omitempty" json:"tls_cluster"`
	TokenFile string   `yaml:"token-file,omitempty" json:"token_file"`
}

// variable returns the environment variable that says what a flag does not.
func variable(flag string) string {
	return "SEQ_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// texts returns the flags with one text each.
func (c *connection) texts() map[string]*string {
	return map[string]*string{"tls-ca": &c.CA, "tls-cert": &c.Cert, "tls-key": &c.Key, "tls-cluster": &c.Cluster, "token-file": &c.TokenFile}
}

// addTo declares the flags. env gives their defaults, and says that a variable does.
func (c *connection) addTo(fs *pflag.FlagSet, env func(string) string, addrs ...string) {
	or := func(flag string) string {
		if env("") == "" {
			return ""
		}
		return " (or " + variable(flag) + ")"
	}
	if text := env(variable("addr")); text != "" {
		addrs = strings.Split(text, ",")
	}
	fs.StringSliceVar(&c.Addrs, "addr", addrs, "gRPC `address` of a router or AllocSvr, host:port; of several the first one that answers"+or("addr"))
	fs.StringVar(&c.CA, "tls-ca", env(variable("tls-ca")), "PEM `file` of the CAs that the cluster's certificates are signed by"+or("tls-ca")+"; empty: plaintext")
	fs.StringVar(&c.Cert, "tls-cert", env(variable("tls-cert")), "PEM `file` of a certificate to show"+or("tls-cert")+"; empty: none")
	fs.StringVar(&c.Key, "tls-key", env(variable("tls-key")), "PEM `file` of its key"+or("tls-key")+"; required with --tls-cert")
	fs.StringVar(&c.Cluster, "tls-cluster", env(variable("tls-cluster")), "`id` of the cluster of which servers must show a role in their certificates, of several Sets all, such as a,b"+or("tls-cluster")+"; empty: not looked at")
	fs.StringVar(&c.TokenFile, "token-file", env(variable("token-file")), "`file` with a token to show, mode 0600, over TLS only"+or("token-file")+"; empty: none")
}

// environment is os.Getenv, which is there.
func environment(name string) string {
	if name == "" {
		return "there"
	}
	return os.Getenv(name)
}

// fill takes from a context what neither a flag nor a variable says.
func (c *connection) fill(from connection, fs *pflag.FlagSet) {
	said := func(flag string) bool { return fs.Changed(flag) || os.Getenv(variable(flag)) != "" }
	if !said("addr") {
		c.Addrs = from.Addrs
	}
	theirs := from.texts()
	for flag, mine := range c.texts() {
		if !said(flag) {
			*mine = cmp.Or(*theirs[flag], *mine)
		}
	}
}

// check checks every setting and returns the options to dial with. Its errors are usage errors.
func (c *connection) check() ([]grpc.DialOption, error) {
	if len(c.Addrs) == 0 {
		return nil, daemon.Usage(errors.New("--addr: expected host:port"))
	}
	if err := hostport.DialAll("--addr", c.Addrs); err != nil {
		return nil, daemon.Usage(err)
	}
	c.Addrs = unique(c.Addrs) // a shell that completes has the flags parsed twice
	dial, err := c.secure()
	return dial, daemon.Usage(err)
}

// unique returns the list without what stood there before.
func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (c *connection) secure() ([]grpc.DialOption, error) {
	secured, err := rpc.NewTLS(rpc.TLSFiles{CA: c.CA, Cert: c.Cert, Key: c.Key}, nil)
	switch {
	case err != nil:
		return nil, err
	case secured == nil && (c.Cluster != "" || c.TokenFile != ""):
		return nil, errors.New("--tls-cluster and --token-file: expected --tls-ca beside them")
	case c.Cluster != "":
		of := strings.Split(c.Cluster, ",")
		secured.Identify(of[0], true)
		secured.TrustSets(func(cluster string) bool { return slices.Contains(of, cluster) })
	}
	dial := secured.DialSets(auth.Store, auth.Alloc, auth.Router)
	if c.TokenFile == "" {
		return dial, nil
	}
	token, err := rpc.TokenFile(c.TokenFile)
	return append(dial, grpc.WithPerRPCCredentials(token)), err
}
