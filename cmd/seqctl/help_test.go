package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/tests/kit/helpaudit"
)

func TestTheHelpOfEveryVerbTellsUnitsDefaultsAndHowToCallIt(t *testing.T) {
	for _, wrong := range helpaudit.Verbs(root()) {
		t.Error(wrong)
	}
}

// speechless are the verbs without -o, each for its reason.
var speechless = map[string]string{
	"seqctl dev":        "runs until Ctrl-C; --ready-file has what it listens on, as JSON",
	"seqctl gossip-key": "prints one word, for a file",
}

func TestEveryVerbThatPrintsDataSpeaksJSONAndYAML(t *testing.T) {
	got := helpaudit.WithoutOutput(root())
	var want []string
	for path := range speechless {
		want = append(want, path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verbs without -o (-want +got)\n%s", diff)
	}
}

func TestTheHelpDocumentsTheExitCodes(t *testing.T) {
	root := root()
	if !strings.Contains(root.Long, "Exit codes: 0 done, 1 failed, 2 wrongly called") {
		t.Errorf("seqctl --help does not tell the exit codes: %q", root.Long)
	}
	var leaves int
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.HasSubCommands() {
			leaves++
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if leaves < 30 {
		t.Errorf("%d verbs, expected all of them", leaves)
	}
}

func TestTheHelpShowsEachVerbInAGroupAndBeginsWithWhatANewcomerNeeds(t *testing.T) {
	var help bytes.Buffer
	if err := run(t.Context(), nil, &help, io.Discard); err != nil {
		t.Fatal(err)
	}
	_, verbs, _ := strings.Cut(help.String(), "Start here:\n")
	first := strings.SplitN(verbs, "\n", 5)
	for i, want := range []string{"dev", "next", "current", "status"} {
		if !strings.HasPrefix(strings.TrimSpace(first[i]), want+" ") {
			t.Errorf("line %d below \"Start here\" is %q, expected the verb %s", i+1, first[i], want)
		}
	}
	for _, verb := range root().Commands() {
		if verb.GroupID == "" {
			t.Errorf("the verb %s is in no group of the help (groups in main.go)", verb.Name())
		}
	}
	for _, g := range groups {
		if !strings.Contains(help.String(), "\n"+g.title+"\n") {
			t.Errorf("the help does not show the group %q", g.title)
		}
	}
}
