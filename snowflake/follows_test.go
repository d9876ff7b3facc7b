package snowflake

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestALayoutInUseMayOnlyChangeWhereOldIDsKeepTheirMeaning(t *testing.T) {
	const old = "time:40,worker:10,sequence:12;unit=1ms;epoch=1288834974657"
	for _, tc := range []struct {
		name, next string
		want       error
	}{
		{"equal", old, nil},
		{"another spelling", "time:40,machine:10,sequence:12;epoch=1288834974657", nil},
		{"policies", old + ";overflow=borrow;rollback=wait:5ms", nil},
		{"one more bit of time on top", "time:41,worker:10,sequence:12;epoch=1288834974657", nil},
		{"a datacenter on top", "datacenter:1,time:40,worker:10,sequence:12;epoch=1288834974657", nil},
		{"less time", "time:39,worker:10,sequence:12;epoch=1288834974657", ErrLayoutChange},
		{"time for workers", "time:39,worker:11,sequence:12;epoch=1288834974657", ErrLayoutChange},
		{"workers for sequence", "time:40,worker:9,sequence:13;epoch=1288834974657", ErrLayoutChange},
		{"a bit of workers for a datacenter", "time:40,datacenter:1,worker:9,sequence:12;epoch=1288834974657", ErrLayoutChange},
		{"a datacenter in the middle", "time:40,datacenter:1,worker:10,sequence:12;epoch=1288834974657", ErrLayoutChange},
		{"another order", "time:40,sequence:12,worker:10;epoch=1288834974657", ErrLayoutChange},
		{"a later epoch", "time:40,worker:10,sequence:12;epoch=1288834974658", ErrLayoutChange},
		{"an earlier epoch", "time:40,worker:10,sequence:12;epoch=1288834974656", ErrLayoutChange},
		{"a longer unit", "time:40,worker:10,sequence:12;unit=10ms;epoch=1288834974657", ErrLayoutChange},
	} {
		was, err := ParseLayout(old)
		if err != nil {
			t.Fatal(err)
		}
		next, err := ParseLayout(tc.next)
		if err != nil {
			t.Fatal(err)
		}
		if got := next.Follows(was); !errors.Is(got, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestPresetsDoNotFollowEachOther(t *testing.T) {
	for _, a := range PresetNames() {
		for _, b := range PresetNames() {
			err := preset(t, a).Follows(preset(t, b))
			if a == b && err != nil || a != b && !errors.Is(err, ErrLayoutChange) {
				t.Errorf("%s after %s: got %v", a, b, err)
			}
		}
	}
}

// keepsMeaning is Follows written a second time: every ID of old, one by one.
func keepsMeaning(old, next Layout) bool {
	for id := range ID(1) << old.Bits() {
		was, err := old.Decode(id)
		if err != nil {
			panic(err)
		}
		is, err := next.Decode(id)
		if err != nil || is != was {
			return false
		}
		wasAt, _ := old.TimeOf(was.Tick)
		isAt, _ := next.TimeOf(is.Tick)
		if !wasAt.Equal(isAt) {
			return false
		}
	}
	return true
}

func TestFollowsAgreesWithLookingAtEveryOldID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := anyLayout(t, 6)
		next := anyLayout(t, 8)
		if rapid.Bool().Draw(t, "near") {
			// Most drawn pairs differ everywhere; these differ in one place.
			next = old
			k := rapid.SampledFrom(old.order[:]).Draw(t, "field")
			if next.width[k] > 0 {
				next.width[k]++
			}
			if next.width[kindDatacenter] == 0 && rapid.Bool().Draw(t, "add") {
				copy(next.order[1:], old.order[:])
				next.order[0], next.width[kindDatacenter] = kindDatacenter, 1
			}
			if err := next.finish(maxBits); err != nil {
				t.Fatal(err)
			}
		}
		err := next.Follows(old)
		if err != nil && !errors.Is(err, ErrLayoutChange) {
			t.Fatal(err)
		}
		if got, want := err == nil, keepsMeaning(old, next); got != want {
			t.Fatalf("%s after %s: allowed %t, want %t (%v)", next, old, got, want, err)
		}
	})
}
