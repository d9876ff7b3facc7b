package membership

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// deadline is generous: a condition that holds at last passes, however busy the machine is.
const deadline = 30 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := eventually(func() error { return goleak.Find() }); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines left behind:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// eventually repeats check until it returns nil, and returns its last error at the deadline.
func eventually(check func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(deadline)
	for {
		err := check()
		if err == nil || time.Now().After(end) {
			return err
		}
		<-tick.C
	}
}

func wait(t *testing.T, check func() error) {
	t.Helper()
	if err := eventually(check); err != nil {
		t.Fatal(err)
	}
}

// start runs a node of cluster "test" in the LAN profile, which no busy machine makes suspect a live
// node; tests of a death choose the fast one. It is closed at the end.
func start(t *testing.T, name string, edit ...func(*Config)) *View {
	t.Helper()
	cfg := Config{
		Name: name, ClusterID: "test", Profile: ProfileLAN, RejoinInterval: 100 * time.Millisecond,
		Meta: Meta{Role: RoleAlloc, Addr: name + ":1", Protocol: 1},
	}
	for _, e := range edit {
		e(&cfg)
	}
	v, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func fast(c *Config) { c.Profile = ProfileFast }

func seed(v *View) func(*Config) {
	return func(c *Config) { c.Join = []string{v.Addr()} }
}

func find(v *View, name string) (Member, error) {
	for _, m := range v.Members() {
		if m.Meta.Name == name {
			return m, nil
		}
	}
	return Member{}, fmt.Errorf("%s does not list %s", v.Self().Name, name)
}

// sees waits until v lists name in the state.
func sees(t *testing.T, v *View, name string, want State) Member {
	t.Helper()
	var m Member
	wait(t, func() (err error) {
		if m, err = find(v, name); err == nil && m.State != want {
			err = fmt.Errorf("%s sees %s as %v, want %v", v.Self().Name, name, m.State, want)
		}
		return err
	})
	return m
}

// meet waits until all the nodes see each other alive.
func meet(t *testing.T, views ...*View) {
	t.Helper()
	for _, v := range views {
		for _, o := range views {
			sees(t, v, o.Self().Name, StateAlive)
		}
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}
