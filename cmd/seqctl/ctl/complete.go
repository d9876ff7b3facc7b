package ctl

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// completeTime bounds asking a cluster for names, because a user waits at a prompt.
const completeTime = time.Second

// Completer is the function that cobra calls for the possible words of an argument.
type Completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// OneOf completes words that are known, or read without a cluster.
func OneOf(words ...string) Completer { return oneOf(func() []string { return words }) }

func oneOf(words func() []string) Completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

func contextNames() []string {
	all, _, err := loadContexts()
	if err != nil {
		return nil
	}
	return all.names()
}

// Complete completes names that ask gets from the cluster; none if that does not answer.
func (o *Options) Complete(ask func(ctx context.Context) ([]string, error)) Completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		none := cobra.ShellCompDirectiveNoFileComp
		if _, err := o.Check(); err != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		names, err := ask(ctx)
		if err != nil {
			return nil, none
		}
		return names, none
	}
}

// completeArgs is Complete with what the route table says.
func (o *Options) completeArgs(names func(*survey.Cluster) []string) Completer {
	return o.Complete(func(ctx context.Context) ([]string, error) {
		c, err := o.routes(ctx)
		if err != nil {
			return nil, err
		}
		return names(c), nil
	})
}

func nodes(c *survey.Cluster) []string { return nodeNames(c) }

func spaces(c *survey.Cluster) (names []string) {
	for _, s := range c.Mapping.Spaces {
		names = append(names, s.Name)
	}
	return names
}

// completeAll completes the values of flags that mean the same wherever they are.
func completeAll(root *cobra.Command) {
	words := map[string]Completer{"output": OneOf("table", "json", "yaml"), "context": oneOf(contextNames)}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for flag, completer := range words {
			if _, done := cmd.GetFlagCompletionFunc(flag); !done && cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, completer) // it is there
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
