package quorum

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOfEqualAcceptedEpochsTheLaterPayloadIsMerged(t *testing.T) {
	e := epoch(4, me)
	a := RegisterState{Register: "dx", Promised: e, Accepted: e, Max: 9, Payload: []byte("first"), PayloadMax: 8}
	b := RegisterState{Register: "dx", Promised: e, Accepted: e, Max: 9, Payload: []byte("second"), PayloadMax: 9}
	older := RegisterState{Register: "dx", Promised: e, Accepted: epoch(3, me), Max: 9, Payload: []byte("older"), PayloadMax: 9}
	for _, pair := range [][2]RegisterState{{a, b}, {b, a}, {b, older}, {older, b}} {
		if diff := cmp.Diff(b, Merge(pair[0], pair[1])); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if got := Merge(a, older); string(got.Payload) != "first" {
		t.Errorf("an older epoch's payload with a larger max: got %q", got.Payload)
	}
}

func TestMemberListsAreComparedInEverything(t *testing.T) {
	l := listOf(3, 2, 2, "abc|d")
	if m, ok := l.Find("b"); !ok || m.Name != "b" {
		t.Errorf("b is %+v, %v", m, ok)
	}
	if m, ok := l.Find("a"); !ok || m.Name != "a" {
		t.Errorf("a, the first, is %+v, %v", m, ok)
	}
	if m, ok := listOf(3, 2, 2, "|d").Learner(); !ok || m.Name != "d" {
		t.Errorf("a learner that is the first is %+v, %v", m, ok)
	}
	if m, ok := l.Find("z"); ok || m != (Member{}) {
		t.Errorf("z is %+v, %v", m, ok)
	}
	if m, ok := l.Learner(); !ok || m.Name != "d" {
		t.Errorf("the learner is %+v, %v", m, ok)
	}
	if m, ok := listOf(3, 2, 2, "abc").Learner(); ok || m != (Member{}) {
		t.Errorf("no learner is %+v, %v", m, ok)
	}
	for name, change := range map[string]func(*MemberList){
		"version": func(o *MemberList) { o.Version++ }, "R": func(o *MemberList) { o.R++ }, "W": func(o *MemberList) { o.W++ },
		"members": func(o *MemberList) { o.Members[0].Addr = "elsewhere:1" },
	} {
		o := listOf(3, 2, 2, "abc|d")
		if !l.Equal(o) {
			t.Fatal("a list is not itself")
		}
		if change(&o); l.Equal(o) {
			t.Errorf("another %s is the same list", name)
		}
	}
	want := Ref{Cluster: "c", Era: 5, Members: 3, MembersHash: MembersHash(l.Members)}
	if got := l.Ref("c", 5); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	id := Identity{Ref: Ref{Members: 3}, R: 2, W: 2, Members: l.Members}
	if got := id.List(); !got.Equal(l) {
		t.Errorf("the list of the identity is %+v", got)
	}
	turned := listOf(3, 2, 2, "abc")
	slices.Reverse(turned.Members)
	turned.Members = append(turned.Members, Member{Name: "b", UUID: "a2"}, Member{Name: "b", UUID: "a1"})
	turned.Sort()
	order := ""
	for _, m := range turned.Members {
		order += m.UUID + " "
	}
	if order != "a a1 a2 b c " {
		t.Errorf("the order is %s", order)
	}
}

func TestTheHashOfMembersTellsUUIDsApartAndNothingElse(t *testing.T) {
	of := func(uuids ...string) uint64 {
		var members []Member
		for i, u := range uuids {
			members = append(members, Member{UUID: u, Name: fmt.Sprint(i)})
		}
		return MembersHash(members)
	}
	if of() != 0 || of("a", "b", "c") != of("c", "a", "b") {
		t.Error("the empty list is not 0, or the order matters")
	}
	if got := of("a", "b", "c"); got != 0xbd735517dea8b04b {
		t.Errorf("the hash of a, b and c is %#x: stores of an older release would refuse it", got)
	}
	seen := map[uint64]string{}
	for _, list := range []string{"", "a", "b", "ab", "a b", "b c", "a bc", "ab c", "a b c", "x"} {
		h := of(strings.Fields(list)...)
		if seen[h] != "" {
			t.Errorf("%q and %q are the same", list, seen[h])
		}
		seen[h] = list + "."
	}
}

func TestAListNamesItsMembers(t *testing.T) {
	for name, change := range map[string]func(l *MemberList){
		"no name":      func(l *MemberList) { l.Members[1].Name = "" },
		"no uuid":      func(l *MemberList) { l.Members[1].UUID = "" },
		"a name twice": func(l *MemberList) { l.Members[1].Name = "a" },
	} {
		l := listOf(1, 2, 2, "abc")
		if change(&l); !errors.Is(l.Validate(), ErrBadConfig) {
			t.Errorf("%s: got %v, want ErrBadConfig", name, l.Validate())
		}
	}
	if err := (Config{N: 3, R: 2, W: 2, Timeout: -1}).Validate(); !errors.Is(err, ErrBadConfig) {
		t.Errorf("a negative timeout: %v", err)
	}
}
