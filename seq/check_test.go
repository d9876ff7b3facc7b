package seq_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func TestARequestAtItsBoundsIsTakenAndBeyondThemRefusedByName(t *testing.T) {
	rows := []struct {
		name string
		err  error
		want error // nil if err must be nil
		text string
	}{
		{"count 0", seq.CheckCount("count", 0), seq.ErrBadCount, "count is 0, expected 1 to 1048576"},
		{"count 1", seq.CheckCount("count", 1), nil, ""},
		{"largest count", seq.CheckCount("count", seq.MaxCount), nil, ""},
		{"count too large", seq.CheckCount("count", seq.MaxCount+1), seq.ErrBadCount, "count is 1048577"},
		{"no ids", seq.CheckIDs("count", 0), seq.ErrBadCount, "count is 0"},
		{"most ids", seq.CheckIDs("count", seq.MaxIDs), nil, ""},
		{"too many ids", seq.CheckIDs("count", seq.MaxIDs+1), seq.ErrBadCount, "count is 100001, expected 1 to 100000"},
		{"no keys", seq.CheckKeys("batches", 0), seq.ErrBadBatch, "batches has 0 keys"},
		{"most keys", seq.CheckKeys("batches", seq.MaxBatch), nil, ""},
		{"too many keys", seq.CheckKeys("batches", seq.MaxBatch+1), seq.ErrBadBatch, "10001 keys, expected 1 to 10000"},
		{"floor 0", seq.CheckFloor("at_least", 0), nil, ""},
		{"highest floor", seq.CheckFloor("at_least", uint64(seq.MaxSeq)), nil, ""},
		{"floor too high", seq.CheckFloor("at_least", uint64(seq.MaxSeq)+1), seq.ErrOverflow, "at_least is 9007199254740992"},
		{"empty key", seq.CheckKey("key", ""), seq.ErrBadArgument, "key of 0 bytes, expected 1 to 1024"},
		{"longest key", seq.CheckKey("key", strings.Repeat("k", seq.MaxKey)), nil, ""},
		{"long key", seq.CheckKey("key", strings.Repeat("k", seq.MaxKey+1)), seq.ErrBadArgument, "key of 1025 bytes"},
		{"no tag", seq.CheckTag(""), seq.ErrBadArgument, "tag of 0 bytes, expected 1 to 128"},
		{"longest tag", seq.CheckTag(strings.Repeat("t", seq.MaxTagName)), nil, ""},
		{"long tag", seq.CheckTag(strings.Repeat("t", seq.MaxTagName+1)), seq.ErrBadArgument, "tag of 129 bytes"},
		{"every byte of tags", seq.CheckTag("aZ09._:-"), nil, ""},
		{"another byte", seq.CheckTag("a b"), seq.ErrBadArgument, `tag "a b"`},
		{"namespace", seq.CheckNamespace("a0._-"), nil, ""},
		{"longest namespace", seq.CheckNamespace(strings.Repeat("n", 64)), nil, ""},
		{"long namespace", seq.CheckNamespace(strings.Repeat("n", 65)), seq.ErrBadArgument, "namespace name"},
		{"a number for a namespace", seq.CheckNamespace("1"), seq.ErrBadArgument, `namespace name "1"`},
		{"no namespace", seq.CheckNamespace(""), seq.ErrBadArgument, "namespace name"},
		{"no agent", seq.CheckAgent(""), nil, ""},
		{"longest agent", seq.CheckAgent("A-" + strings.Repeat("9", 62)), nil, ""},
		{"long agent", seq.CheckAgent(strings.Repeat("a", 65)), seq.ErrBadArgument, "agent"},
		{"an agent of digits", seq.CheckAgent("7of9"), seq.ErrBadArgument, `agent "7of9"`},
	}
	for _, row := range rows {
		if !errors.Is(row.err, row.want) || row.err != nil && !strings.Contains(row.err.Error(), row.text) {
			t.Errorf("%s: got %v, want %v naming %q", row.name, row.err, row.want, row.text)
		}
	}
}

func TestTheKeysOfABatchAreUIDsAndThenTheHashesOfStrings(t *testing.T) {
	batch := seq.Batch{UIDs: []uint64{7, 1<<64 - 1}, Keys: []string{"room:7"}, Counts: []uint32{1, 2, seq.MaxCount}}
	if err := batch.Check(0); err != nil {
		t.Fatal(err)
	}
	got := seq.KeyHasher{}.Counters(batch)
	if want := []seq.UID{7, 1<<64 - 1, seq.HashKey("room:7")}; !slices.Equal(got.UIDs, want) || !slices.Equal(got.Places, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	under := seq.KeyHasher{Secret: seq.NewKeySecret()}
	keyed := under.Counters(batch)
	if want := []seq.UID{7, 1<<64 - 1, under.UID("room:7")}; !slices.Equal(keyed.UIDs, want) || !slices.Equal(keyed.Places, got.Places) {
		t.Errorf("under a secret: got %v, want the UIDs %v at the places of before", keyed, want)
	}
	if a, b := keyed.At(1).String(), keyed.At(2).String(); a != "uid 18446744073709551615" || b != "the string key" {
		t.Errorf("they are called %q and %q", a, b)
	}
	for _, row := range []struct {
		name  string
		batch seq.Batch
		want  error
		text  string
	}{
		{"a count too few", seq.Batch{UIDs: []uint64{1}, Keys: []string{"a"}, Counts: []uint32{1}}, seq.ErrBadBatch, "batches[3].counts has 1 entries for 2 keys"},
		{"a count too many", seq.Batch{UIDs: []uint64{1}, Counts: []uint32{1, 1}}, seq.ErrBadBatch, "batches[3].counts has 2 entries for 1 keys"},
		{"a count of 0", seq.Batch{UIDs: []uint64{1, 2}, Counts: []uint32{1, 0}}, seq.ErrBadCount, "batches[3].counts[1] is 0"},
		{"a count too large", seq.Batch{UIDs: []uint64{1}, Counts: []uint32{seq.MaxCount + 1}}, seq.ErrBadCount, "batches[3].counts[0] is 1048577"},
		{"an empty key", seq.Batch{Keys: []string{"a", ""}}, seq.ErrBadArgument, "batches[3].keys[1] of 0 bytes"},
		{"a key that is no text", seq.Batch{Keys: []string{"a", "\xff"}}, seq.ErrBadArgument, "batches[3].keys[1] is not UTF-8"},
		{"a long key", seq.Batch{Keys: []string{strings.Repeat("k", 1025)}}, seq.ErrBadArgument, "batches[3].keys[0] of 1025 bytes"},
	} {
		if err := row.batch.Check(3); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("%s: got %v, want %v naming %q", row.name, err, row.want, row.text)
		}
	}
}
