// Command setscale computes what the map of Sets costs: sections move at random between Sets while clients
// hold old maps. It uses the map itself (package sets, its message) and the rules by which nodes and
// clients learn of a newer map. It counts time in seconds.
//
//	go run ./tests/setscale [-sets 100] [-sections 4096] [-clients 100000] [-moves 1]
//
// Its output stands in docs/sets.md.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

type options struct {
	sets, sections, clients, nodes, moves, calls int
	seed                                         uint64
}

func main() {
	var o options
	flag.IntVar(&o.sets, "sets", 100, "Sets")
	flag.IntVar(&o.sections, "sections", 4096, "sections, each of which moves once")
	flag.IntVar(&o.clients, "clients", 100_000, "clients, each with a map of its own")
	flag.IntVar(&o.nodes, "nodes", 3, "AllocSvr a Set")
	flag.IntVar(&o.moves, "moves", 1, "sections that move in a second")
	flag.IntVar(&o.calls, "calls", 2, "calls of a client in a second, each of a random section")
	flag.Uint64Var(&o.seed, "seed", 1, "of all that is drawn")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "setscale:", err)
		os.Exit(1)
	}
}

// poll is the time in seconds between two requests for the map by a node that is not of the root, as in
// package allocsvr/documents.
const poll = 5

// figures are counted over the whole run.
type figures struct {
	seconds, calls, late, fetches, polls, sent int
}

func run(o options) error {
	r := rand.New(rand.NewPCG(o.seed, 1))
	m, err := spread(o, r)
	if err != nil {
		return err
	}
	order := r.Perm(o.sections)
	moved := make([]uint64, o.sections) // the version of the map that first has the section where it is
	clients, nodes := make([]uint64, o.clients), make([]uint64, o.sets)
	for i := range clients {
		clients[i] = m.Version
	}
	for i := range nodes {
		nodes[i] = m.Version
	}
	var f figures
	for ; len(order) > 0; f.seconds++ {
		for range min(o.moves, len(order)) {
			id := seq.SectionID(order[0])
			order = order[1:]
			if m, err = move(m, id, r); err != nil {
				return err
			}
			moved[id] = m.Version
		}
		for i := range nodes {
			if (f.seconds+i)%poll != 0 {
				continue
			}
			f.polls += o.nodes
			if nodes[i] < m.Version {
				nodes[i] = m.Version
				f.sent += o.nodes
			}
		}
		for c := range clients {
			for range o.calls {
				f.calls++
				id := r.IntN(o.sections)
				if moved[id] <= clients[c] {
					continue
				}
				f.late++ // the former Set's node sends it on, and the client asks where it was sent for the map
				f.fetches++
				clients[c] = max(clients[c], nodes[m.Index(seq.SectionID(id))])
			}
		}
	}
	return f.print(o, m)
}

// spread is a map with the sections dealt out at random.
func spread(o options, r *rand.Rand) (m sets.Map, err error) {
	root := sets.Set{Name: sets.RootName, Cluster: "c-0", Addrs: []string{"alloc-0.main.example:7400"}}
	for i := 1; i < o.sets; i++ {
		s := sets.Set{Name: fmt.Sprint("set-", i), Cluster: fmt.Sprintf("c-%08d", i)}
		for n := range o.nodes {
			s.Addrs = append(s.Addrs, fmt.Sprintf("alloc-%d.set-%d.example:7400", n, i))
		}
		if m, _, err = m.Add(root, s); err != nil {
			return m, err
		}
	}
	for id := range seq.SectionID(o.sections) {
		if m, err = move(m, id, r); err != nil {
			return m, err
		}
	}
	return m, nil
}

// move takes one section to another Set than it is in.
func move(m sets.Map, id seq.SectionID, r *rand.Rand) (sets.Map, error) {
	to := r.IntN(len(m.Sets))
	if to == m.Index(id) {
		to = (to + 1) % len(m.Sets)
	}
	m, moving, err := m.Begin(m.Sets[to].Name, []sets.Range{{First: id, Sections: 1}}, time.Time{})
	if err != nil {
		return m, err
	}
	m, _ = m.Arrive(moving.ID, map[seq.SectionID]uint64{id: 1 << 40})
	return m, nil
}

func (f figures) print(o options, m sets.Map) error {
	body, err := m.Encode()
	if err != nil {
		return err
	}
	wire := proto.Size(rpc.SetMapToProto(m))
	each := float64(f.fetches) / float64(o.clients*f.seconds)
	fmt.Printf("%d Sets of %d AllocSvr, %d sections moved one by one in %d s, %d clients of %d calls/s\n", o.sets, o.nodes, o.sections, f.seconds, o.clients, o.calls)
	fmt.Printf("the map: %d B in a message, %d B as the root's document\n", wire, len(body))
	fmt.Printf("calls sent on by the former Set: %d of %d, %.2f %%\n", f.late, f.calls, 100*float64(f.late)/float64(f.calls))
	fmt.Printf("maps fetched by a client: %.4f/s, %.2f kB/s; from each AllocSvr: %.0f/s, %.2f MB/s\n", each, each*float64(wire)/1e3,
		each*float64(o.clients)/float64(o.sets*o.nodes), each*float64(o.clients)*float64(wire)/float64(o.sets*o.nodes)/1e6)
	fmt.Printf("at the root: %.0f polls/s by other Sets' AllocSvr, of which %.0f/s bring a map, %.2f MB/s; none by clients\n",
		float64(f.polls)/float64(f.seconds), float64(f.sent)/float64(f.seconds), float64(f.sent)*float64(wire)/float64(f.seconds)/1e6)
	return nil
}
