package ctl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// named puts the verb in front of its error, "store add: ...", unless the error begins so.
func named(cmd *cobra.Command, err error) error {
	if err == nil || !cmd.HasParent() {
		return err
	}
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	for _, name := range []string{path, cmd.Name()} {
		if rest, ok := strings.CutPrefix(err.Error(), name); ok && rest != "" && (rest[0] == ':' || rest[0] == ' ') {
			return &retold{path + rest, err}
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// retold is an error in other words.
type retold struct {
	text  string
	cause error
}

func (e *retold) Error() string { return e.text }
func (e *retold) Unwrap() error { return e.cause }

// Group is a verb that only has others below it.
func Group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = unknownVerb
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(verbs...)
	return cmd
}

// unknownVerb refuses every argument of a command that has only verbs.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			verbs = append(verbs, sub.Name())
		}
	}
	return daemon.Usage(fmt.Errorf("unknown verb %q%s (%s --help lists all)", args[0], didYouMean(args[0], verbs), cmd.CommandPath()))
}

// didYouMean is ", did you mean X?" if there is such an X.
func didYouMean(word string, words []string) string {
	if near := ui.Closest(word, words); near != "" {
		return fmt.Sprintf(", did you mean %s?", near)
	}
	return ""
}

// Known returns the existing names, for an error about an unknown name. It returns all of them if they are
// few, and otherwise the closest.
func Known(word string, names []string, list string) string {
	const few = 12
	switch near := ui.Closest(word, names); {
	case len(names) == 0:
		return "there is none"
	case len(names) <= few:
		return "expected one of " + strings.Join(names, ", ")
	case near != "":
		return fmt.Sprintf("did you mean %s? %s lists all %d", near, list, len(names))
	}
	return fmt.Sprintf("%s lists all %d", list, len(names))
}

// wrongFlag says what a flag was given and what it takes, in place of what the parser of
// its type says.
func wrongFlag(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value) && config.Digits(value.GetValue()) != nil && !strings.HasPrefix(value.GetFlag().Value.Type(), "float"):
		err = fmt.Errorf("--%s %q: %w", value.GetFlag().Name, value.GetValue(), config.Digits(value.GetValue()))
	case errors.As(err, &value):
		if want := expected(value.GetFlag().Value.Type()); want != "" {
			err = fmt.Errorf("--%s %q: expected %s", value.GetFlag().Name, value.GetValue(), want)
		}
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		name := unknown.GetSpecifiedName()
		if len(name) > 1 {
			err = fmt.Errorf("unknown flag --%s%s", name, didYouMean("--"+name, names))
		}
		if short := unknown.GetSpecifiedShortnames(); short != "" && strings.Trim(short, "0123456789") == "" {
			err = fmt.Errorf("%w: -%s: expected a whole number from 0 on", seq.ErrBadArgument, short)
		}
	}
	return daemon.Usage(err)
}

// expected returns what a flag of the type takes, or "" if the flag's own error is better.
func expected(kind string) string {
	switch kind {
	case "int", "int64":
		return "a whole number below 2^63"
	case "uint", "uint64":
		return "a whole number from 0 to 2^64-1"
	case "uint32":
		return "a whole number from 0 to 2^32-1"
	case "float64":
		return "a number"
	case "duration":
		return "a time with its unit, such as 500ms, 10s or 2m"
	case "bool":
		return "true or false"
	}
	return ""
}
