package ctl

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// contextRow is a context as add, use and list print it.
type contextRow struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	connection
}

func contextCommand() *cobra.Command {
	return Group(&cobra.Command{
		Use:   "context",
		Short: "name clusters, and choose which one the other verbs ask",
		Long: `A context keeps the addresses of a cluster and the paths of the files to reach it with, under a
name, in seqctl/contexts.yaml of the user's configuration directory, mode 0600. It never keeps a
token or a key. A verb takes the context of --context or SEQ_CONTEXT; without them the one in
use, unless an address is named by --addr, --stores, SEQ_ADDR or SEQ_STORES.`,
	}, contextAddCommand(), contextUseCommand(), contextListCommand(), contextRemoveCommand())
}

// contextVerb runs do on the contexts, writes them back if it says so, and prints rows.
func contextVerb(cmd *cobra.Command, do func(all *contexts, args []string) (rows []string, changed bool, err error)) *cobra.Command {
	output := ""
	addOutput(cmd, &output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := ui.ParseFormat(output)
		if err != nil {
			return daemon.Usage(err)
		}
		all, path, err := loadContexts()
		if err != nil {
			return err
		}
		names, changed, err := do(&all, args)
		if err != nil {
			return err
		}
		if changed {
			if err := all.save(path); err != nil {
				return err
			}
		}
		return printContexts(cmd.OutOrStdout(), format, all, names)
	}
	return cmd
}

func printContexts(w io.Writer, format ui.Format, all contexts, names []string) error {
	rows := []contextRow{}
	for _, name := range names {
		rows = append(rows, contextRow{name, name == all.Current, all.Contexts[name]})
	}
	return ui.Print(w, format, rows, func() *ui.Table {
		t := ui.NewTable("context", "in use", "addresses", "tls ca", "tls cert", "token file")
		for _, r := range rows {
			t.Row(r.Name, map[bool]string{true: "yes"}[r.Current], strings.Join(r.Addrs, ","), r.CA, r.Cert, r.TokenFile)
		}
		return t
	})
}

func contextAddCommand() *cobra.Command {
	var c connection
	var use, replace bool
	cmd := &cobra.Command{
		Use:     "add NAME --addr ADDR",
		Short:   "give a cluster a name",
		Example: "  seqctl context add prod --addr a.example:7400,b.example:7400 --tls-ca ca.pem --token-file ~/.seqsvr-token --use",
		Args:    ExactArgs("NAME"),
	}
	c.addTo(cmd.Flags(), func(string) string { return "" })
	cmd.Flags().Lookup("addr").Usage += "; required"
	cmd.Flags().BoolVar(&use, "use", false, "have the other verbs ask this one")
	cmd.Flags().BoolVar(&replace, "replace", false, "also if there is one of that name")
	return contextVerb(cmd, func(all *contexts, args []string) ([]string, bool, error) {
		name := args[0]
		if !contextName.MatchString(name) {
			return nil, false, daemon.Usage(fmt.Errorf("name %q: expected up to 63 of A-Z a-z 0-9 . _ -, a letter or digit first", name))
		}
		if _, there := all.Contexts[name]; there && !replace {
			return nil, false, daemon.Usage(fmt.Errorf("there is a context %s: --replace puts this one in its place", name))
		}
		for _, path := range []*string{&c.CA, &c.Cert, &c.Key, &c.TokenFile} {
			if abs, err := filepath.Abs(*path); *path != "" && err == nil {
				*path = abs // it is used from other directories
			}
		}
		if _, err := c.check(); err != nil {
			return nil, false, err
		}
		all.Contexts[name] = c
		if use {
			all.Current = name
		}
		return []string{name}, true, nil
	})
}

func contextUseCommand() *cobra.Command {
	var none bool
	cmd := &cobra.Command{
		Use:     "use NAME|--none",
		Short:   "choose the cluster that the other verbs ask",
		Example: "  seqctl context use prod\n  seqctl context use --none",
		Args: func(cmd *cobra.Command, args []string) error {
			if none && len(args) == 0 || !none && len(args) == 1 {
				return nil
			}
			return wrongArgs(cmd, len(args))
		},
		ValidArgsFunction: oneOf(contextNames),
	}
	cmd.Flags().BoolVar(&none, "none", false, "choose none: "+DefaultAddr+" again")
	return contextVerb(cmd, func(all *contexts, args []string) ([]string, bool, error) {
		if none {
			all.Current = ""
			return nil, true, nil
		}
		if _, err := all.find(args[0]); err != nil {
			return nil, false, err
		}
		all.Current = args[0]
		return args, true, nil
	})
}

func contextListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the contexts",
		Args:  ExactArgs(),
	}
	return contextVerb(cmd, func(all *contexts, _ []string) ([]string, bool, error) { return all.names(), false, nil })
}

func contextRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "remove NAME",
		Short:             "forget a context; its files stay",
		Example:           "  seqctl context remove prod",
		Args:              ExactArgs("NAME"),
		ValidArgsFunction: oneOf(contextNames),
	}
	return contextVerb(cmd, func(all *contexts, args []string) ([]string, bool, error) {
		if _, err := all.find(args[0]); err != nil {
			return nil, false, err
		}
		delete(all.Contexts, args[0])
		if all.Current == args[0] {
			all.Current = ""
		}
		return all.names(), true, nil
	})
}
