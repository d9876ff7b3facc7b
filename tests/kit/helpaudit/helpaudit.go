package helpaudit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flags names everything that the help of a flag set leaves open: a flag without a text,
// a number without its unit, and a flag whose default shows as nothing and is not told in
// words: "empty: ...", "0: ..." or "required".
func Flags(fs *pflag.FlagSet) (wrong []string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		say := func(what string) { wrong = append(wrong, fmt.Sprintf("--%s: %s: %q", f.Name, what, f.Usage)) }
		unit, _ := pflag.UnquoteUsage(f)
		switch kind := f.Value.Type(); {
		case f.Usage == "":
			say("no text")
		case isNumber(kind) && unit == plainName(kind) && !counts(f.Usage):
			say("no unit, neither as a `word` nor by what it counts")
		case silent(f) && !tellsNothing(f):
			say("the default shows as nothing, and the text does not say what that means")
		}
	})
	return wrong
}

// Verbs walks a command and all below it, and names what the help of each leaves open: its
// flags, a missing text in one line, and a verb that takes arguments or needs flags and
// has no example.
func Verbs(root *cobra.Command) (wrong []string) {
	walk(root, func(cmd *cobra.Command) {
		for _, w := range Flags(cmd.LocalFlags()) {
			wrong = append(wrong, cmd.CommandPath()+" "+w)
		}
		if cmd.Short == "" {
			wrong = append(wrong, cmd.CommandPath()+": no text in one line")
		}
		if cmd.Runnable() && !cmd.HasSubCommands() && takesArguments(cmd) && cmd.Example == "" {
			wrong = append(wrong, cmd.CommandPath()+": it takes arguments and has no example")
		}
	})
	return wrong
}

// WithoutOutput are the paths of the verbs that have no -o for JSON and YAML.
func WithoutOutput(root *cobra.Command) (paths []string) {
	walk(root, func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Flags().ShorthandLookup("o") == nil {
			paths = append(paths, cmd.CommandPath())
		}
	})
	return paths
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// takesArguments: its line has more than its name.
func takesArguments(cmd *cobra.Command) bool {
	return strings.Contains(strings.TrimSuffix(cmd.Use, " [flags]"), " ")
}

func isNumber(kind string) bool {
	return strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") || strings.HasPrefix(kind, "float")
}

// plainName is what pflag shows for a flag whose text has no `word`.
func plainName(kind string) string {
	for _, name := range []string{"uint", "int", "float"} {
		if strings.HasPrefix(kind, name) && (kind == name+"64" || kind == name) {
			return name
		}
	}
	return kind
}

// counts tells a text that says by itself what a number is of.
func counts(usage string) bool {
	for _, word := range []string{"how many", "number of", "share of", "a second"} {
		if strings.Contains(usage, word) {
			return true
		}
	}
	return false
}

// silent: pflag shows no default for it. False is no secret.
func silent(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "0", "0s", "[]":
		return f.Value.Type() != "bool"
	}
	return false
}

// tellsNothing: the text says what no value means.
func tellsNothing(f *pflag.Flag) bool {
	for _, word := range []string{"empty", "required", "0:", "none:", "default ", "a new tag has", "in place of"} {
		if strings.Contains(f.Usage, word) {
			return true
		}
	}
	return false
}
