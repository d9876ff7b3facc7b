package ctl

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// shells are the shells with the line that has each complete seqctl from then on.
var shells = []struct {
	name, install string
	script        func(root *cobra.Command, w io.Writer) error
}{
	{"bash", `echo 'source <(seqctl completion bash)' >> ~/.bashrc`,
		func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
	{"zsh", `echo 'autoload -U compinit; compinit; source <(seqctl completion zsh)' >> ~/.zshrc`,
		func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }},
	{"fish", `seqctl completion fish > ~/.config/fish/completions/seqctl.fish`,
		func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
}

// completionCommand stands in place of cobra's own.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion [SHELL]",
		Short: "print how a shell learns to complete verbs, nodes, spaces and more; with its name, what it reads",
		Example: "  seqctl completion\n" +
			"  source <(seqctl completion bash)",
		Args:              RangeArgs(0, 1),
		ValidArgsFunction: OneOf("bash", "zsh", "fish"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, s := range shells {
				names = append(names, s.name)
				switch {
				case len(args) == 0:
					fmt.Fprintf(cmd.OutOrStdout(), "%s:\n  %s\n", s.name, s.install)
				case args[0] == s.name:
					return s.script(cmd.Root(), cmd.OutOrStdout())
				}
			}
			if len(args) > 0 {
				return daemon.Usage(fmt.Errorf("shell %q: %s", args[0], Known(args[0], names, "")))
			}
			return nil
		},
	}
}
