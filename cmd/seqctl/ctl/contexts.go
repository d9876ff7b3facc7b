package ctl

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// errContext means that a context does not exist, or that the file of contexts is not valid.
var errContext = errors.New("no such context")

// contexts are the clusters that a user has given names, in a file of the user's own.
type contexts struct {
	Current  string                `yaml:"current,omitempty"` // used if no address is given; may be empty
	Contexts map[string]connection `yaml:"contexts"`
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// contextsFile is where they are kept.
func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where are contexts kept: %w", err)
	}
	return filepath.Join(dir, "seqctl", "contexts.yaml"), nil
}

// loadContexts reads the file. If the file does not exist, there are no contexts. Other users must not read
// or write it, because its writer chooses where tokens are sent.
func loadContexts() (c contexts, path string, err error) {
	c.Contexts = map[string]connection{}
	if path, err = contextsFile(); err != nil {
		return c, path, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, path, nil
	}
	if err != nil {
		return c, path, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return c, path, fmt.Errorf("%s has mode %04o: expected 0600 (chmod 600 %s)", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, path, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return c, path, fmt.Errorf("%s is not as seqctl context writes it: remove it and add the contexts again", path)
	}
	return c, path, nil
}

// save writes the file, whole or not at all.
func (c contexts) save(path string) error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".contexts-") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

func (c contexts) find(name string) (connection, error) {
	found, ok := c.Contexts[name]
	if !ok {
		return found, daemon.Usage(fmt.Errorf("%w: %q, %s", errContext, name, Known(name, c.names(), "seqctl context list")))
	}
	return found, nil
}

func (c contexts) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// context fills what the flags leave open from the context that --context or SEQ_CONTEXT
// names, or from the current one if no address is named: the credentials of one cluster are
// not sent to another because its address was typed.
func (o *Options) context(fs *pflag.FlagSet) error {
	name := o.contextName
	if name == "" {
		for _, flag := range []string{"addr", "stores"} {
			if f := fs.Lookup(flag); f != nil && (f.Changed || os.Getenv(variable(flag)) != "") {
				return nil
			}
		}
	}
	all, _, err := loadContexts()
	if err != nil {
		return err
	}
	if name == "" {
		name = all.Current
	}
	if name == "" {
		return nil
	}
	found, err := all.find(name)
	if err != nil {
		return err
	}
	o.fill(found, fs)
	o.inContext = true
	return nil
}
