package ids

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// nowhere is an address where nothing listens: what is done without a cluster works there.
const nowhere = "127.0.0.1:1"

// vectors are IDs of the systems whose layouts the presets are.
var vectors = []struct {
	layout                       string
	id                           int64
	time                         string
	ticks                        uint64
	datacenter, worker, sequence uint64
}{
	{"twitter", 4194304, "2010-11-04T01:42:54.658Z", 1, 0, 0, 0},
	{"twitter", 4194305, "2010-11-04T01:42:54.658Z", 1, 0, 0, 1},
	{"twitter", 1541815603606036480, "2022-06-28T16:07:40.105Z", 367597485448, 11, 26, 0},
	{"regional", 108152875544481803, "2022-03-22T07:55:44.532Z", 51571309826, 1, 1, 11},
	{"regional", 107209837483659272, "2022-03-17T03:01:08.943Z", 51121634237, 1, 1, 8},
	{"baidu-29", 180363646902239241, "2017-01-19T04:15:46.000Z", 10498546, 0, 4, 9},
	{"leaf", 1169786042799259000, "2019-09-06T01:35:00.834Z", 1567733700834 - 1288834974657, 0, 39, 3448},
	{"sonyflake", 362637573840961538, "2021-07-07T17:20:37.710Z", 21614883771, 0, 2, 0},
}

func TestTheVectorsOfEachLayoutDecodeWithoutACluster(t *testing.T) {
	t.Setenv("SEQ_ADDR", nowhere)
	for _, v := range vectors {
		out, err := call(t, fields(fmt.Sprintf("snowflake decode %d --layout %s -o json", v.id, v.layout))...)
		if err != nil {
			t.Errorf("%s: decode %d: %v", v.layout, v.id, err)
			continue
		}
		number := func(n uint64) json.Number { return json.Number(fmt.Sprint(n)) }
		want := map[string]any{
			"id": json.Number(fmt.Sprint(v.id)), "id_str": fmt.Sprint(v.id), "layout": v.layout, "time": v.time, "ticks": number(v.ticks),
			"fields": map[string]any{"datacenter": number(v.datacenter), "worker": number(v.worker), "sequence": number(v.sequence)},
		}
		if diff := cmp.Diff(want, parsed(t, out)); diff != "" {
			t.Errorf("%s: decode %d (-want +got)\n%s", v.layout, v.id, diff)
		}
	}
}

func TestTheVectorsOfEachLayoutComposeWithoutACluster(t *testing.T) {
	t.Setenv("SEQ_ADDR", nowhere)
	for _, v := range vectors {
		for _, when := range []string{"--time " + v.time, fmt.Sprintf("--tick %d", v.ticks)} {
			line := fmt.Sprintf("snowflake compose --layout %s %s --datacenter %d --worker %d --sequence %d -o json", v.layout, when, v.datacenter, v.worker, v.sequence)
			out, err := call(t, fields(line)...)
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			var got decoded
			if err := json.Unmarshal([]byte(out), &got); err != nil || got.ID != v.id || got.Time != v.time {
				t.Errorf("%s: printed %s (%v), want %d", line, out, err, v.id)
			}
		}
	}
}

func TestALayoutIsGivenByItsTextToo(t *testing.T) {
	tests := []struct{ layout, want string }{
		{"time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z", "sonyflake"},
		{"sequence:8,time:39,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z", "sequence:8,time:39,worker:16;unit=10ms;epoch=1409529600000"},
	}
	for _, test := range tests {
		out, err := call(t, "snowflake", "decode", "362637573840961538", "--layout", test.layout, "-o", "json")
		var got decoded
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Layout != test.want {
			t.Errorf("%s: got %v and %q, want layout %s", test.layout, err, out, test.want)
		}
	}
}

func TestTextFormsAreReadAndWritten(t *testing.T) {
	const id = 1023510546613293056
	for form, text := range map[string]string{"decimal": "1023510546613293056", "base58": "3nNeLuv1t79", "base62": "1Dbgj8dVOrI", "zbase32": "hpb7pppcywyy", "hex": "e343d6b5ac05000"} {
		var read, made decoded
		out, err := call(t, "snowflake", "decode", text, "--text", form, "-o", "json")
		if err != nil || json.Unmarshal([]byte(out), &read) != nil || read.ID != id || read.Text != "" {
			t.Errorf("%s: decode: got %v and %q", form, err, out)
		}
		out, err = call(t, fields("snowflake compose --tick 244023930219 --worker 5 -o json --text", form)...)
		if err != nil || json.Unmarshal([]byte(out), &made) != nil || made.ID != id {
			t.Errorf("%s: compose: got %v and %q", form, err, out)
		}
		if form != "decimal" && made.Text != text {
			t.Errorf("%s: compose wrote %q, want %q", form, made.Text, text)
		}
		if out, err = call(t, fields("snowflake compose --tick 244023930219 --worker 5 --text", form)...); err != nil || !strings.Contains(out, text+" ") {
			t.Errorf("%s: the table of compose is\n%s(%v), want %q", form, out, err, text)
		}
	}
}

func TestLayoutsSaysWhenEachRunsOut(t *testing.T) {
	t.Setenv("SEQ_ADDR", "no address") // it is not looked at
	out, err := call(t, fields("snowflake layouts -o json")...)
	if err != nil {
		t.Fatal(err)
	}
	var rows []layoutRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) != len(snowflake.PresetNames()) {
		t.Fatalf("got %d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if r.Layout != snowflake.PresetNames()[i] || r.ReadOnly {
			t.Errorf("row %d is %s", i, r.Layout)
		}
		if r.Layout == "baidu" && (!r.RanOut || !r.Warning || r.RunsOut != "2024-11-20T13:24:16.000Z" || r.MaxDatacenter != nil) {
			t.Errorf("baidu: %+v", r)
		}
		if r.Layout == "twitter" && (r.RanOut || r.RunsOut != "2080-07-10T17:30:30.209Z" || r.MaxDatacenter == nil || *r.MaxDatacenter != 31 || r.MaxWorker != 31) {
			t.Errorf("twitter: %+v", r)
		}
	}
	out, err = call(t, fields("snowflake layouts time:41,worker:10,sequence:12;epoch=1288834974657")...)
	if err != nil || !strings.Contains(out, "leaf ") || strings.Contains(out, "twitter") {
		t.Errorf("one layout: got %v and\n%s", err, out)
	}
	out, err = call(t, fields("snowflake layouts -o yaml")...)
	if err != nil || !strings.Contains(out, "rollback: wait:5ms") {
		t.Errorf("yaml: got %v and\n%s", err, out)
	}
}

func TestAWrongCallIsAUsageErrorThatNamesWhatIsWrong(t *testing.T) {
	tests := []struct {
		line string
		want string
		is   error
	}{
		{"snowflake mint", `"mint"`, nil},
		{"segment drop", `"drop"`, nil},
		{"namespace remove", `"remove"`, nil},
		{"snowflake gen 5", "seqctl snowflake gen", nil},
		{"snowflake gen --count 0", "--count 0", seq.ErrBadCount},
		{"snowflake gen --count -5", "--count -5", seq.ErrBadCount},
		{"snowflake gen --count 100001", "--count 100001", seq.ErrBadCount},
		{"snowflake gen --text base64", `"base64"`, snowflake.ErrEncoding},
		{"snowflake gen --addr here", "--addr", nil},
		{"snowflake gen -o xml", `"xml"`, nil},
		{"snowflake decode", "seqctl snowflake decode ID", nil},
		{"snowflake decode 1 2", "seqctl snowflake decode ID", nil},
		{"snowflake decode -1", "sign bit set", seq.ErrBadID},
		{"snowflake decode -- -1", "sign bit set", seq.ErrBadID},
		{"snowflake decode -z", "shorthand", nil},
		{"snowflake decode x", "not in alphabet", seq.ErrBadID},
		{"snowflake decode 3nNeLuv1t7l --text base58", "character 11", seq.ErrBadID},
		{"snowflake decode 9223372036854775808", "above 63 bits", seq.ErrBadID},
		{"snowflake decode 12345678901234567890", "length", seq.ErrBadID},
		{"snowflake decode 1 --text base64", `"base64"`, snowflake.ErrEncoding},
		{"snowflake decode 1 --layout moon", `"moon"`, seq.ErrBadLayout},
		{"snowflake decode 1 --layout time:50,worker:9,sequence:6;epoch=0", "65 bits", seq.ErrBadLayout},
		{"snowflake decode 1 --layout leaf --namespace default", "--namespace", seq.ErrBadArgument},
		{"snowflake compose", "--time and --tick", seq.ErrBadArgument},
		{"snowflake compose --tick 1 --time 2022-03-22T07:55:44Z", "--time and --tick", seq.ErrBadArgument},
		{"snowflake compose --time=", `--time ""`, seq.ErrBadArgument},
		{"snowflake compose --time yesterday", `"yesterday"`, seq.ErrBadArgument},
		{"snowflake compose --tick 1 --worker -1", "--worker", nil},
		{"snowflake compose --tick 1 --layout moon", `"moon"`, seq.ErrBadLayout},
		{"snowflake layouts moon", `"moon"`, seq.ErrBadLayout},
		{"snowflake layouts -o xml", `"xml"`, nil},
		{"snowflake workers all", "seqctl snowflake workers", nil},
		{"segment add", "seqctl segment add TAG", nil},
		{"segment add t --min-step 0", "--min-step 0", seq.ErrBadArgument},
		{"segment add t --max-step 4294967297", "--max-step", seq.ErrBadArgument},
		{"segment add t --start 9007199254740992", "--start", seq.ErrBadArgument},
		{"segment list t", "seqctl segment list", nil},
		{"segment next", "seqctl segment next TAG", nil},
		{"segment next t --count 0", "--count 0", seq.ErrBadCount},
		{"segment next t --count 1048577", "--count 1048577", seq.ErrBadCount},
		{"namespace add", "seqctl namespace add NAME", nil},
		{"namespace add n --layout moon", `"moon"`, seq.ErrBadLayout},
		{"namespace add n --overflow hope", "--overflow", seq.ErrBadLayout},
		{"namespace add n --rollback wait", "--rollback", seq.ErrBadLayout},
		{"namespace add n --alias x", "--alias", nil},
		{"namespace list n", "seqctl namespace list", nil},
		{"namespace show", "seqctl namespace show NAME", nil},
	}
	for _, test := range tests {
		t.Run(test.line, func(t *testing.T) {
			out, err := call(t, fields(test.line)...)
			if !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("got %v, want a usage error with %q that is %v", err, test.want, test.is)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestAnEmptyNameIsNotTakenForAllNamespaces(t *testing.T) {
	for _, verb := range []string{"show", "add"} {
		if _, err := call(t, "namespace", verb, "", "--addr", nowhere); !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%s: got %v, want a usage error", verb, err)
		}
	}
}

func TestWhatALayoutCannotHoldIsRefusedByName(t *testing.T) {
	tests := []struct {
		line string
		want error
	}{
		{"snowflake decode 9007199254740992 --layout time:32,worker:9,sequence:12;js53;unit=1s;epoch=0", seq.ErrBadID},
		{"snowflake compose --tick 1 --layout regional --datacenter 8", seq.ErrBadID},
		{"snowflake compose --tick 1 --layout regional --worker 64", seq.ErrBadID},
		{"snowflake compose --tick 1 --layout regional --sequence 4096", seq.ErrBadID},
		{"snowflake compose --tick 1 --layout leaf --datacenter 1", seq.ErrBadID},
		{"snowflake compose --time 2005-01-01T00:00:00Z", seq.ErrBadID},
		{"snowflake compose --time 2024-11-20T21:24:16+08:00 --layout baidu", seq.ErrTimeExhausted},
		{"snowflake compose --tick 268435456 --layout baidu", seq.ErrTimeExhausted},
	}
	for _, test := range tests {
		out, err := call(t, fields(test.line)...)
		if !errors.Is(err, test.want) || errors.Is(err, daemon.ErrUsage) || out != "" {
			t.Errorf("%s: got %v and %q, want %v and no usage error", test.line, err, out, test.want)
		}
	}
	out, err := call(t, fields("snowflake compose --time 2024-11-20T21:24:15+08:00 --layout baidu")...)
	if err != nil || !strings.Contains(out, "2024-11-20T13:24:15.000Z") {
		t.Errorf("the last second: got %v and %q", err, out)
	}
}
