package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestPrintShowsEveryValueWithItsSource(t *testing.T) {
	fs, _ := flags(t)
	path := file(t, "lease: 2500ms\nstores: [b:1, c:1]\n")
	env := environment(map[string]string{"SEQ_LISTEN": "true"})
	if err := Load(fs, []string{"--config", path, "--max-batch=7"}, env); err != nil {
		t.Fatal(err)
	}
	got, err := Print(fs)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`lease: 2.5s # FILE:1
listen: "true" # environment SEQ_LISTEN
max-batch: 7 # flag --max-batch
stores: ['b:1', 'c:1'] # FILE:2
strict: false # default
weights: [] # default
`, "FILE", path)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPrintedConfigLoadsToTheSameValues(t *testing.T) {
	fs, want := flags(t)
	args := []string{"--max-batch=7", "--lease=90s", "--strict", "--listen", "a: b # c", "--stores", "x,y", "--weights", "3"}
	if err := Load(fs, args, nil); err != nil {
		t.Fatal(err)
	}
	text, err := Print(fs)
	if err != nil {
		t.Fatal(err)
	}
	again, got := flags(t)
	if err := Load(again, []string{"--config", file(t, string(text))}, nil); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPrintOfNoFlagsIsEmpty(t *testing.T) {
	got, err := Print(pflag.NewFlagSet("none", pflag.ContinueOnError))
	if err != nil || len(got) != 0 {
		t.Errorf("got %q, %v, want nothing", got, err)
	}
}
