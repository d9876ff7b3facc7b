package globalid

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	maxAgents = 1024 // names counted apart
	// Neither of these can be an agent's name.
	unnamedAgent = "(none)"
	otherAgents  = "(other)" // all beyond maxAgents
)

// agents counts the IDs that each agent got. The zero value is ready for use. It is safe for concurrent
// use, and holds at most maxAgents names, whatever callers send.
type agents struct {
	known sync.Map // name -> *atomic.Uint64
	mu    sync.Mutex
	n     int // names in known, also one for all others; guarded by mu
}

// counter returns the counter of an agent: seq.ErrBadArgument for what is no name.
func (a *agents) counter(name string) (*atomic.Uint64, error) {
	if err := seq.CheckAgent(name); err != nil {
		return nil, err
	}
	name = cmp.Or(name, unnamedAgent)
	if c, ok := a.known.Load(name); ok {
		return c.(*atomic.Uint64), nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n >= maxAgents {
		name = otherAgents
	}
	c, known := a.known.LoadOrStore(name, new(atomic.Uint64))
	if !known {
		a.n++
	}
	return c.(*atomic.Uint64), nil
}

// counts returns the IDs by agent since start.
func (a *agents) counts() map[string]uint64 {
	out := map[string]uint64{}
	a.known.Range(func(name, c any) bool {
		out[name.(string)] = c.(*atomic.Uint64).Load()
		return true
	})
	return out
}
