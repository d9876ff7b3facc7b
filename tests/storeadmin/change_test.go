package storeadmin

import (
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

func TestADeadStoreIsReplacedUnderLoadByACommandKilledAtEveryStep(t *testing.T) {
	c := start(t)
	l := startLoad(t, c)
	l.flows("at first")
	seqctl(t, c, "store", "status").Want(t, 0, "HEALTHY", "N=3 R=2 W=2")
	fresh := addStore(t, c)
	seqctl(t, c, "store", "replace", "--dead", "store-1", "--new", fresh.Addr).Want(t, 1, "alive")

	dead := c.Process("store-3")
	kill(t, dead)
	seqctl(t, c, "store", "status").Want(t, 1, "seqctl store replace --dead store-3")
	args := []string{"store", "replace", "--dead", "store-3", "--new", fresh.Addr}
	for step := 1; !killAtStep(t, c, step, args...); step++ {
		kill(t, fresh) // and with it, the one that is being filled
		startStore(t, fresh)
		l.flows("with a replacement killed")
	}
	seqctl(t, c, args...).Want(t, 0, "nothing to do", fresh.Name)
	l.flows("with the new store")
	seqctl(t, c, "store", "status").Want(t, 0, "HEALTHY", fresh.Name)

	// The new store and any one of the old are enough, and the old one that was
	// replaced is nobody any more.
	kill(t, c.Process("store-1"))
	l.flows("without the first store")
	startStore(t, dead)
	seqctl(t, c, "store", "status").Want(t, 1, "store-3 is no member")
	startStore(t, c.Process("store-1"))
	l.flows("with all again")

	// A process that starts now, with the former addresses, finds the new store.
	alloc := c.Process("alloc-1")
	kill(t, alloc)
	kill(t, c.Process("store-2"))
	if err := alloc.Start(); err != nil {
		t.Fatal(err)
	}
	l.flows("after an allocator's restart")
	if report := l.check(); report.Errors > report.Requests/10 {
		t.Errorf("%d of %d calls failed", report.Errors, report.Requests)
	}
}

func TestThreeStoresBecomeFiveAndThreeAgainUnderLoad(t *testing.T) {
	c := start(t)
	l := startLoad(t, c)
	l.flows("at first")
	for _, n := range []string{"N=4 R=3 W=3", "N=5 R=3 W=3"} {
		fresh := addStore(t, c)
		for step := 2; step <= 3; step++ {
			killAtStep(t, c, step, "store", "add", fresh.Addr)
		}
		seqctl(t, c, "store", "add", fresh.Addr).Want(t, 0, n)
		l.flows("with " + n)
	}
	for _, name := range []string{"store-1", "store-2"} {
		kill(t, c.Process(name))
	}
	l.flows("without two of five")
	for _, name := range []string{"store-1", "store-2"} {
		startStore(t, c.Process(name))
	}
	for _, name := range []string{"store-2", "store-1"} {
		killAtStep(t, c, 2, "store", "remove", name)
		if got := seqctl(t, c, "store", "remove", name); got.Code != 0 {
			got.Want(t, 1, "no such store") // decided before the kill
		}
		l.flows("without " + name)
	}
	for _, name := range []string{"store-1", "store-2"} {
		kill(t, c.Process(name))
	}
	l.flows("with the three that are left")
	seqctl(t, c, "store", "status").Want(t, 0, "N=3 R=2 W=2")
	if report := l.check(); report.Errors > report.Requests/10 {
		t.Errorf("%d of %d calls failed", report.Errors, report.Requests)
	}
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		if p.Failed() {
			t.Errorf("%s ended: %s", p.Name, p.Exit())
		}
	}
}
