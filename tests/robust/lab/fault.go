package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

// Fault is one way to break the cluster. Run breaks it, waits, and heals it; the cluster
// must then recover by itself. It may break only nodes that it took from the round.
type Fault struct {
	Kind string
	// Needs is what must be there: "", needNetwork or needDisk.
	Needs string
	// Alone: no second fault beside it.
	Alone bool
	Run   func(ctx context.Context, r *round) error
}

const (
	needNetwork = "network namespaces (root, ip, nft)"
	needDisk    = "the disk helper (root or fusermount, /dev/fuse)"
)

// Faults lists all kinds.
func Faults() []Fault {
	return slices.Concat(processFaults, networkFaults, wayFaults, diskFaults)
}

// Lacks says what the lab lacks for the fault; empty: nothing.
func (l *Lab) Lacks(f Fault) string {
	if f.Needs == needNetwork && l.network == nil || f.Needs == needDisk && len(l.disks) == 0 {
		return f.Needs
	}
	return ""
}

// nodes are the nodes that faults of a round have taken: no two break the same one.
type nodes struct {
	mu    sync.Mutex // guards taken
	taken map[string]bool
}

// round is one fault under way.
type round struct {
	*Lab
	random *rand.Rand // of this fault alone: what the other one does cannot change it
	nodes  *nodes
	what   []string // what was done, for the report
}

// take gives count random processes of the roles that no other fault of the round has;
// fewer if there are not so many.
func (r *round) take(count int, roles ...localcluster.Role) []*localcluster.Process {
	r.nodes.mu.Lock()
	defer r.nodes.mu.Unlock()
	free := slices.DeleteFunc(r.Processes(roles...), func(p *localcluster.Process) bool { return r.nodes.taken[p.Name] })
	r.random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	free = free[:min(count, len(free))]
	for _, p := range free {
		r.nodes.taken[p.Name] = true
	}
	return free
}

// note tells the report what was done.
func (r *round) note(format string, args ...any) {
	r.what = append(r.what, fmt.Sprintf(format, args...))
}

// between draws a length of time.
func (r *round) between(low, high time.Duration) time.Duration {
	return (low + time.Duration(r.random.Int64N(int64(high-low)+1))).Round(time.Millisecond)
}

// rest lets time go by; it ends early, without an error, when the run is to end: what
// was broken is healed in any case.
func (r *round) rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func names(processes []*localcluster.Process) (list []string) {
	for _, p := range processes {
		list = append(list, p.Name)
	}
	return list
}

// each does something to all processes at once; the first error.
func each(processes []*localcluster.Process, do func(*localcluster.Process) error) error {
	errs := make([]error, len(processes))
	var wg sync.WaitGroup
	for i, p := range processes {
		wg.Go(func() { errs[i] = do(p) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", processes[i].Name, err)
		}
	}
	return nil
}
