package ctl

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/config"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// parseDigits parses a whole number that cannot be misread. It refuses 010.
func parseDigits(text string, bits int) (uint64, error) {
	if err := config.Digits(text); err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, bits)
}

// parseUID reads an argument; a wrong one is daemon.ErrUsage.
func parseUID(text string) (seq.UID, error) {
	v, err := parseDigits(text, 64)
	if err != nil {
		return 0, daemon.Usage(fmt.Errorf("uid %q: expected a whole number from 0 to 2^64-1, without leading zeros (string keys go with --key)", text))
	}
	return seq.UID(v), nil
}

func parseSection(text string) (seq.SectionID, error) {
	v, err := parseDigits(text, 32)
	if err != nil {
		return 0, daemon.Usage(fmt.Errorf("section %q: expected a whole number from 0, without leading zeros", text))
	}
	return seq.SectionID(v), nil
}

func parseSeq(text string) (seq.Seq, error) {
	v, err := parseDigits(text, 64)
	if err != nil || seq.Seq(v) > seq.MaxSeq {
		return 0, daemon.Usage(fmt.Errorf("sequence %q: expected a whole number from 0 to 2^53-1 (%d), without leading zeros", text, uint64(seq.MaxSeq)))
	}
	return seq.Seq(v), nil
}

// AddSpaceTo declares --space.
func (o *Options) AddSpaceTo(cmd *cobra.Command, space *string) {
	cmd.Flags().StringVar(space, "space", "", "kind of `counter`; empty is "+seq.DefaultSpace)
	_ = cmd.RegisterFlagCompletionFunc("space", o.completeArgs(spaces)) // it is there
}

// target is a counter: a UID or a string key, in a space.
type target struct {
	space string
	key   string
}

func (t *target) addTo(cmd *cobra.Command, o *Options) {
	o.AddSpaceTo(cmd, &t.space)
	cmd.Flags().StringVar(&t.key, "key", "", "string `key` in place of a UID")
}

// one reads the target from the flags and the first argument. The number of arguments after the UID is
// others. A wrong target is daemon.ErrUsage.
func (t *target) one(cmd *cobra.Command, args []string, others int) (id survey.CounterID, rest []string, err error) {
	switch keyed := cmd.Flags().Changed("key"); {
	case keyed && seq.CheckKey("key", t.key) != nil:
		return id, nil, daemon.Usage(seq.CheckKey("key", t.key))
	case keyed && len(args) == others:
		return survey.CounterID{Key: t.key}, args, nil
	case keyed || len(args) != others+1:
		return id, nil, wrongArgs(cmd, len(args))
	}
	uid, err := parseUID(args[0])
	return survey.CounterOf(uid), args[1:], err
}

// sequenceOf returns the sequence of a counter in the space.
func sequenceOf(space string, id survey.CounterID) client.Key {
	if id.UID == nil {
		return client.StringKey(space, id.Key)
	}
	return client.Key{Space: space, UID: seq.UID(*id.UID)}
}
