package snowflake

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func preset(t testing.TB, name string) Layout {
	t.Helper()
	l, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestKnownIDsDecodeAndComposeBitForBit(t *testing.T) {
	for _, tc := range []struct {
		layout string
		id     ID
		parts  Parts
		at     string
	}{
		{"twitter", 4194304, Parts{Tick: 1}, "2010-11-04T01:42:54.658Z"},
		{"twitter", 4194305, Parts{Tick: 1, Sequence: 1}, "2010-11-04T01:42:54.658Z"},
		{"twitter", 1541815603606036480, Parts{Tick: 367597485448, Datacenter: 11, Worker: 26}, "2022-06-28T16:07:40.105Z"},
		{"regional", 108152875544481803, Parts{Tick: 51571309826, Datacenter: 1, Worker: 1, Sequence: 11}, "2022-03-22T07:55:44.532Z"},
		{"regional", 107209837483659272, Parts{Tick: 51121634237, Datacenter: 1, Worker: 1, Sequence: 8}, "2022-03-17T03:01:08.943Z"},
		{"baidu-29", 180363646902239241, Parts{Tick: 10498546, Worker: 4, Sequence: 9}, "2017-01-19T04:15:46Z"},
		{"leaf", 1169786042799259000, Parts{Tick: 1567733700834 - 1288834974657, Worker: 39, Sequence: 3448}, "2019-09-06T01:35:00.834Z"},
		{"sonyflake", 362637573840961538, Parts{Tick: 21614883771, Worker: 2}, "2021-07-07T17:20:37.71Z"},
		{"regional-local", 1<<21 | 511<<12 | 4095, Parts{Tick: 1, Worker: 511, Sequence: 4095}, "2020-08-02T10:33:54.707Z"},
		{"baidu", 1<<35 | 7<<13 | 2, Parts{Tick: 1, Worker: 7, Sequence: 2}, "2016-05-19T16:00:01Z"},
		{"request", 1<<22 | 3<<17 | 4<<12 | 5, Parts{Tick: 1, Datacenter: 3, Worker: 4, Sequence: 5}, "2023-08-03T18:38:30.203Z"},
		{"request-wide", 1<<24 | 4095<<12 | 5, Parts{Tick: 1, Worker: 4095, Sequence: 5}, "2023-08-03T18:38:30.203Z"},
	} {
		l := preset(t, tc.layout)
		got, err := l.Decode(tc.id)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.parts, got); d != "" {
			t.Errorf("%s: decode %d (-want +got):\n%s", tc.layout, tc.id, d)
		}
		id, err := l.Compose(tc.parts)
		if err != nil || id != tc.id {
			t.Errorf("%s: compose %+v: got %d, %v, want %d", tc.layout, tc.parts, id, err, tc.id)
		}
		at, err := l.TimeOf(got.Tick)
		if err != nil || at.Format(time.RFC3339Nano) != tc.at {
			t.Errorf("%s: id %d is of %s, %v, want %s", tc.layout, tc.id, at.Format(time.RFC3339Nano), err, tc.at)
		}
	}
}

func TestPresetsHaveTheFieldsUnitAndEpochTheirUsersKnow(t *testing.T) {
	want := map[string]string{
		"twitter":        "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1288834974657",
		"regional":       "time:42,datacenter:3,worker:6,sequence:12;unit=1ms;epoch=1596364434706",
		"regional-local": "time:42,worker:9,sequence:12;unit=1ms;epoch=1596364434706",
		"baidu":          "time:28,worker:22,sequence:13;unit=1s;epoch=1463673600000;overflow=borrow",
		"baidu-29":       "time:29,worker:21,sequence:13;unit=1s;epoch=1474300800000;overflow=borrow",
		"leaf":           "time:41,worker:10,sequence:12;unit=1ms;epoch=1288834974657;rollback=wait:5ms",
		"request":        "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1691087910202",
		"request-wide":   "time:39,worker:12,sequence:12;unit=1ms;epoch=1691087910202",
		"discord":        "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1420070400000",
		"instagram":      "time:40,worker:13,sequence:10;unit=1ms;epoch=1314220021721",
		"sonyflake":      "time:39,sequence:8,worker:16;unit=10ms;epoch=1409529600000;rollback=borrow",
	}
	got := map[string]string{}
	for _, name := range PresetNames() {
		got[name] = preset(t, name).String()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("presets (-want +got):\n%s", d)
	}
	if _, err := Preset("nobody"); !errors.Is(err, ErrUnknownPreset) {
		t.Errorf("unknown preset: got %v, want %v", err, ErrUnknownPreset)
	}
}

func TestALayoutTellsWhenItRunsOut(t *testing.T) {
	baidu := preset(t, "baidu")
	last := time.Date(2024, 11, 20, 21, 24, 15, 0, time.FixedZone("", 8*3600))
	at, err := baidu.TimeOf(baidu.MaxTick())
	if err != nil || !at.Equal(last) {
		t.Errorf("last tick of baidu: got %s, %v, want %s", at, err, last)
	}
	if got, want := baidu.Exhausted(), last.Add(time.Second); !got.Equal(want) {
		t.Errorf("end of baidu: got %s, want %s", got, want)
	}
	if got := baidu.Remaining(last); got != time.Second {
		t.Errorf("remaining at the last second: got %s, want 1s", got)
	}
	if tick, err := baidu.TickAt(last.Add(999 * time.Millisecond)); err != nil || tick != baidu.MaxTick() {
		t.Errorf("tick in the last second: got %d, %v, want %d", tick, err, baidu.MaxTick())
	}
	if _, err := baidu.TickAt(last.Add(time.Second)); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("tick behind the last second: got %v, want %v", err, ErrTimeExhausted)
	}
	if _, err := baidu.TickAt(baidu.Epoch().Add(-1)); !errors.Is(err, ErrBeforeEpoch) {
		t.Errorf("tick before the epoch: got %v, want %v", err, ErrBeforeEpoch)
	}
	if _, err := baidu.TimeOf(baidu.MaxTick() + 1); !errors.Is(err, ErrTimeExhausted) {
		t.Errorf("time of a tick too large: got %v, want %v", err, ErrTimeExhausted)
	}
}

func TestPartsOutOfRangeAreRefusedByName(t *testing.T) {
	l := preset(t, "twitter")
	for _, tc := range []struct {
		parts Parts
		want  error
	}{
		{Parts{Tick: l.MaxTick() + 1}, ErrTimeExhausted},
		{Parts{Datacenter: 32}, ErrFieldRange},
		{Parts{Worker: 32}, ErrFieldRange},
		{Parts{Sequence: 4096}, ErrFieldRange},
		{Parts{Tick: l.MaxTick(), Datacenter: 31, Worker: 31, Sequence: 4095}, nil},
	} {
		if _, err := l.Compose(tc.parts); !errors.Is(err, tc.want) {
			t.Errorf("compose %+v: got %v, want %v", tc.parts, err, tc.want)
		}
	}
	if _, err := preset(t, "leaf").Compose(Parts{Datacenter: 1}); !errors.Is(err, ErrFieldRange) {
		t.Errorf("datacenter in a layout without: got %v, want %v", err, ErrFieldRange)
	}
	if _, err := l.Decode(-1); !errors.Is(err, ErrSign) {
		t.Errorf("decode -1: got %v, want %v", err, ErrSign)
	}
	if _, err := preset(t, "regional-local").Decode(1 << 62); err != nil {
		t.Errorf("decode the highest bit of 63: got %v, want none", err)
	}
	small, err := ParseLayout("time:41,worker:2,sequence:10;epoch=0;js53")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Decode(1 << 53); !errors.Is(err, ErrFieldRange) {
		t.Errorf("decode a bit above the layout: got %v, want %v", err, ErrFieldRange)
	}
}

func TestTheZeroLayoutDoesNothing(t *testing.T) {
	var l Layout
	_, compose := l.Compose(Parts{})
	_, decode := l.Decode(0)
	_, timeOf := l.TimeOf(0)
	_, tickAt := l.TickAt(time.UnixMilli(0))
	_, marshal := l.MarshalText()
	_, generator := New(l, 0, 0, 0)
	for name, err := range map[string]error{
		"compose": compose, "decode": decode, "time of": timeOf, "tick at": tickAt, "marshal": marshal,
		"new": generator, "follows": l.Follows(l),
	} {
		if !errors.Is(err, ErrLayout) {
			t.Errorf("%s: got %v, want %v", name, err, ErrLayout)
		}
	}
	if l.String() != "" {
		t.Errorf("text: got %q, want none", l)
	}
}

func TestLayoutsAreReadFromText(t *testing.T) {
	for text, want := range map[string]string{
		"sequence:12,machine:10,time:41;epoch=0":                                                    "sequence:12,worker:10,time:41;unit=1ms;epoch=0",
		" time:41 , worker:1 , sequence:1 ; epoch = 2014-09-01T00:00Z ; unit = 60s":                 "time:41,worker:1,sequence:1;unit=1m0s;epoch=1409529600000",
		"time:41,worker:1,sequence:1;epoch=2016-05-20T00:00:00.250+08:00;js53":                      "time:41,worker:1,sequence:1;unit=1ms;epoch=1463673600250;js53",
		"time:1,worker:1,sequence:1;rollback=borrow;js53;overflow=refuse;epoch=1;unit=10ms":         "time:1,worker:1,sequence:1;unit=10ms;epoch=1;js53;overflow=refuse;rollback=borrow",
		"time:1,worker:1,sequence:1;rollback=wait:1500us;epoch=1;overflow=wait":                     "time:1,worker:1,sequence:1;unit=1ms;epoch=1;rollback=wait:1.5ms",
		"datacenter:1,time:31,worker:10,sequence:11;epoch=1;js53":                                   "datacenter:1,time:31,worker:10,sequence:11;unit=1ms;epoch=1;js53",
		"worker:31,datacenter:10,sequence:11,time:11;epoch=1;rollback=refuse;unit=1h;overflow=wait": "worker:31,datacenter:10,sequence:11,time:11;unit=1h0m0s;epoch=1",
	} {
		l, err := ParseLayout(text)
		if err != nil || l.String() != want {
			t.Errorf("parse %q: got %q, %v, want %q", text, l, err, want)
		}
	}
}

func TestLayoutsThatMakeNoSenseAreRefused(t *testing.T) {
	const ok = "time:41,worker:10,sequence:12;epoch=1"
	if _, err := ParseLayout(ok); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", ";", "time", "time:41", ok + ";;x", "worker:10,sequence:12;epoch=1", "time:41,sequence:12;epoch=1", "time:41,worker:10;epoch=1",
		"time:42,worker:10,sequence:12;epoch=1", "time:41,worker:10,sequence:12",
		"time:0,worker:10,sequence:12;epoch=1", "time:64,worker:10,sequence:12;epoch=1", "time:-1,worker:10,sequence:12;epoch=1",
		"time:255,worker:255,sequence:255;epoch=1", "time:63,worker:63,sequence:63,datacenter:63;epoch=1", "time:256,worker:1,sequence:1;epoch=1",
		"time:4,time:4,worker:10,sequence:12;epoch=1", "time:4,machine:4,worker:10,sequence:12;epoch=1",
		"time:4,worker:10,sequence:12,datacenter:1,worker:1;epoch=1", "time:4,worker:10,sequence:12,shard:2;epoch=1", "time:4,,worker:1,sequence:1;epoch=1",
		ok + ";epoch=1", ok + ";unit=0s", ok + ";unit=999us", ok + ";unit=1500us", ok + ";unit=-1ms", ok + ";unit=1", ok + ";unit",
		ok + ";js53", ok + ";color=red", ok + ";overflow=perhaps", ok + ";rollback=wait", ok + ";rollback=wait:0s", ok + ";rollback=wait:-5ms",
		"time:31,worker:10,sequence:12;epoch=1;js53=yes", "time:41,worker:10,sequence:12;epoch=-1", "time:41,worker:10,sequence:12;epoch=soon",
		"time:041,worker:10,sequence:12;epoch=1", "time:41,worker:010,sequence:12;epoch=1", "time:41,worker:10,sequence:12;epoch=01",
		"time:41,worker:10,sequence:12;epoch=2016-05-20", "time:41,worker:10,sequence:12;epoch=1960-05-20T00:00:00Z",
		"time:41,worker:10,sequence:12;epoch=2016-05-20T00:00:00.0001Z", "time:61,worker:1,sequence:1;epoch=0;unit=4ms",
		"time:1,worker:1,sequence:1;epoch=9223372036854775807",
	} {
		if l, err := ParseLayout(text); !errors.Is(err, ErrLayout) && !errors.Is(err, ErrPolicy) {
			t.Errorf("parse %q: got %q, %v, want %v", text, l, err, ErrLayout)
		}
	}
}

func TestLayoutsTravelAsTextInJSON(t *testing.T) {
	var got struct{ L Layout }
	if err := json.Unmarshal([]byte(`{"L":"machine:4,time:41,sequence:8;unit=10ms;epoch=5"}`), &got); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(got)
	if want := `{"L":"worker:4,time:41,sequence:8;unit=10ms;epoch=5"}`; err != nil || string(out) != want {
		t.Errorf("got %s, %v, want %s", out, err, want)
	}
	if err := json.Unmarshal([]byte(`{"L":"time:41"}`), &got); !errors.Is(err, ErrLayout) {
		t.Errorf("bad text: got %v, want %v", err, ErrLayout)
	}
}

func TestALayoutShowsWhatItWasMadeOf(t *testing.T) {
	l := preset(t, "leaf")
	if l.HasDatacenter() || !preset(t, "twitter").HasDatacenter() {
		t.Error("leaf has no datacenters and twitter has")
	}
	if got, want := l.Policy(), (Policy{Rollback: RollbackWait, RollbackWait: 5 * time.Millisecond}); got != want {
		t.Errorf("policy: got %+v, want %+v", got, want)
	}
	other := l.WithPolicy(Policy{Overflow: OverflowRefuse})
	if other == l || other.Follows(l) != nil || other.Policy().Overflow != OverflowRefuse {
		t.Errorf("another policy: got %s", other)
	}
	if tick, err := l.TickAt(time.UnixMilli(SystemClock())); err != nil || tick == 0 {
		t.Errorf("tick of now: got %d, %v", tick, err)
	}
}

func TestAPolicyOutsideItsRangeIsRefused(t *testing.T) {
	for _, p := range []Policy{
		{Overflow: 3}, {Rollback: 3}, {Rollback: RollbackWait}, {RollbackWait: time.Second},
		{Rollback: RollbackWait, RollbackWait: time.Millisecond - 1}, {Rollback: RollbackWait, RollbackWait: -time.Second},
	} {
		if _, err := New(preset(t, "twitter"), 0, 0, 0, WithPolicy(p)); !errors.Is(err, ErrPolicy) {
			t.Errorf("policy %+v: got %v, want %v", p, err, ErrPolicy)
		}
	}
	if got := Overflow(9).String() + Rollback(9).String(); got != "overflow(9)rollback(9)" {
		t.Errorf("text of unknown policies: got %s", got)
	}
}

// anyLayout draws a valid layout of up to total bits.
func anyLayout(t *rapid.T, total int) Layout {
	kinds := []string{"time", "worker", "sequence"}
	if rapid.Bool().Draw(t, "datacenter") {
		kinds = append(kinds, "datacenter")
	}
	kinds = rapid.Permutation(kinds).Draw(t, "order")
	var b strings.Builder
	for i, k := range kinds {
		rest := len(kinds) - 1 - i
		n := rapid.IntRange(1, total-rest).Draw(t, k)
		total -= n
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + ":" + ID(n).String())
	}
	unit := rapid.SampledFrom([]string{"1ms", "2ms"}).Draw(t, "unit")
	epoch := rapid.SampledFrom([]string{"0", "1"}).Draw(t, "epoch")
	l, err := ParseLayout(b.String() + ";unit=" + unit + ";epoch=" + epoch)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPartsAndIDsGoBothWaysInEveryLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLayout(t, maxBits)
		parts := Parts{
			Tick:       Tick(rapid.Uint64Range(0, uint64(l.MaxTick())).Draw(t, "tick")),
			Datacenter: Datacenter(rapid.Uint64Range(0, uint64(l.MaxDatacenter())).Draw(t, "dc")),
			Worker:     Worker(rapid.Uint64Range(0, uint64(l.MaxWorker())).Draw(t, "worker")),
			Sequence:   rapid.Uint64Range(0, l.MaxSequence()).Draw(t, "seq"),
		}
		id, err := l.Compose(parts)
		if err != nil || id < 0 {
			t.Fatalf("%s: compose %+v: got %d, %v", l, parts, id, err)
		}
		got, err := l.Decode(id)
		if err != nil || got != parts {
			t.Fatalf("%s: decode %d: got %+v, %v, want %+v", l, id, got, err, parts)
		}
		again, err := ParseLayout(l.String())
		if err != nil || again != l {
			t.Fatalf("parse %q: got %q, %v", l, again, err)
		}
	})
}

func FuzzParseLayout(f *testing.F) {
	for _, p := range presets {
		f.Add(p.text)
	}
	f.Add("sequence:1,worker:1,datacenter:1,time:1;js53;overflow=refuse;rollback=wait:7ms;epoch=0;unit=3h")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLayout(text)
		if err != nil {
			return
		}
		again, err := ParseLayout(l.String())
		if err != nil || again != l {
			t.Fatalf("parse %q: got %q, %v", l, again, err)
		}
		if err := l.Follows(again); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(int64(1541815603606036480), uint8(0))
	f.Add(int64(362637573840961538), uint8(8))
	f.Add(int64(-1), uint8(3))
	f.Fuzz(func(t *testing.T, raw int64, which uint8) {
		l := preset(t, presets[int(which)%len(presets)].name)
		parts, err := l.Decode(ID(raw))
		if raw < 0 {
			if !errors.Is(err, ErrSign) {
				t.Fatalf("decode %d: got %v, want %v", raw, err, ErrSign)
			}
			return
		}
		if err != nil {
			return
		}
		if id, err := l.Compose(parts); err != nil || id != ID(raw) {
			t.Fatalf("compose %+v: got %d, %v, want %d", parts, id, err, raw)
		}
	})
}
