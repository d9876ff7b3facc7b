package membership

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// lifeOf is a life of a cluster; its digit stands for both ids.
func lifeOf(cluster byte, era seq.Era) seq.Incarnation {
	return seq.Incarnation{Cluster: seq.ClusterID{cluster}, Era: era, Binding: seq.ClusterID{cluster, byte(era)}}
}

func living(life seq.Incarnation) func(*Config) {
	return func(c *Config) { c.Meta.Incarnation = life }
}

// lists waits until a node lists just those that live.
func lists(t *testing.T, v *View, names ...string) {
	t.Helper()
	wait(t, func() error {
		var got []string
		for _, m := range v.Members() {
			if m.State == StateAlive {
				got = append(got, m.Meta.Name)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(names) {
			return fmt.Errorf("%s lists %v, expected %v", v.Self().Name, got, names)
		}
		return nil
	})
}

func TestTwoClustersOfOneNameAreTwoViews(t *testing.T) {
	at := &journal{}
	ours := start(t, "a", living(lifeOf(1, 0)), logging(at))
	friend := start(t, "b", seed(ours), living(lifeOf(1, 0)))
	meet(t, ours, friend)
	theirs := start(t, "a", living(lifeOf(2, 0))) // of the same name too
	theirFriend := start(t, "z", seed(theirs), living(lifeOf(2, 0)))
	meet(t, theirs, theirFriend)
	for _, j := range []struct{ from, to *View }{{theirs, ours}, {theirFriend, ours}, {ours, theirFriend}} {
		if n, err := j.from.tryJoin([]string{j.to.Addr()}); n != 0 || err == nil {
			t.Errorf("%d nodes of another cluster were joined, %v", n, err)
		}
	}
	at.await(t, "is left out", lifeOf(1, 0).String(), lifeOf(2, 0).String(), ours.Addr())
	if ours.Strangers() == 0 {
		t.Error("no stranger is counted")
	}

	// A member of the version before knows no difference, and has both for members.
	before := start(t, "m", seed(ours))
	meet(t, ours, before)
	if n, err := before.tryJoin([]string{theirFriend.Addr()}); n != 1 || err != nil {
		t.Fatalf("a node of the version before joined %d, %v", n, err)
	}
	theirFriend.SetTableVersion(7)
	ours.SetTableVersion(3)
	wait(t, func() error {
		if got := before.HighestTableVersion(); got != 7 {
			return fmt.Errorf("got %d", got)
		}
		return nil
	})
	lists(t, ours, "a", "b", "m")
	lists(t, friend, "a", "b", "m")
	lists(t, theirFriend, "a", "m", "z")
	for _, v := range []*View{ours, friend} {
		if v.HighestTableVersion() > 3 {
			t.Errorf("%s heard of a table of another cluster", v.Self().Name)
		}
	}
}

func TestMembersOfAnotherEraAreListedAndTheirTablesAreNot(t *testing.T) {
	ours := start(t, "a", living(lifeOf(1, 1)))
	old := lifeOf(1, 0)
	router := start(t, "r", seed(ours), living(old))
	meet(t, ours, router)
	router.SetTableVersion(50)
	wait(t, func() error {
		if m, err := find(ours, "r"); err != nil || m.Meta.TableVersion != 50 || m.Meta.Incarnation != old {
			return fmt.Errorf("%+v, %v", m, err)
		}
		return nil
	})
	if got := ours.HighestTableVersion(); got != 0 {
		t.Errorf("table %d of the older era counts", got)
	}
	router.SetIncarnation(lifeOf(1, 1))
	router.SetTableVersion(2)
	wait(t, func() error {
		if got := ours.HighestTableVersion(); got != 2 {
			return fmt.Errorf("table %d, expected the one of the new era", got)
		}
		return nil
	})
}

func TestMetadataWithoutRoomForTheIncarnationGoesWithoutIt(t *testing.T) {
	m := Meta{Role: RoleRouter, Name: "r", Addr: strings.Repeat("a", 200), HTTP: strings.Repeat("h", 220), Incarnation: lifeOf(1, 0)}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMeta("r", b)
	if m.Incarnation = (seq.Incarnation{}); err != nil || got != m {
		t.Errorf("got %+v, %v", got, err)
	}
	m.Addr, m.Incarnation = "a:1", lifeOf(2, 9)
	if b, err = m.Encode(); err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeMeta("r", b); err != nil || got != m {
		t.Errorf("got %+v, %v", got, err)
	}
}
