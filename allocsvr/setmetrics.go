package allocsvr

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

var (
	mSetSections = telemetry.Gauge("alloc_set_sections", "Sections by what this node's Set says of them, as the node knows: active there, stopped for a move, in limbo, or elsewhere.", "state")
	mSetMoves    = telemetry.Gauge("alloc_set_moves_open", "Moves of sections between Sets that are under way, as this node knows.")
	mSetMoved    = telemetry.Counter("alloc_set_sections_moved_total", "Sections that this node stopped for another Set, and sections that it opened for its own.", "op")
)

// sendSets sends the metrics of the Sets. A cluster that is alone has all sections.
func (a *Alloc) sendSets(ch chan<- prometheus.Metric) {
	record, count := a.sets.Known(), map[string]int{"active": 0, "stopped": 0, "limbo": 0, "elsewhere": 0}
	for id := range seq.SectionID(a.sections.Len()) {
		switch record.At(id).State {
		case sets.Active:
			count["active"]++
		case sets.Sealed:
			count["stopped"]++
		case sets.Limbo:
			count["limbo"]++
		default:
			count["elsewhere"]++
		}
	}
	for state, n := range count {
		mSetSections.Send(ch, float64(n), state)
	}
	mSetMoves.Send(ch, float64(len(a.sets.Map().Moves)))
	stopped, opened := a.owner.Moves().Counts()
	mSetMoved.Send(ch, float64(stopped), "stop")
	mSetMoved.Send(ch, float64(opened), "open")
}
