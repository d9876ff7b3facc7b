package allocsvr

import (
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/bubble"
)

func TestNodesTellTheirZonesAndStandbysAreInOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 48})
		f.zones = map[string]string{"n1": "a", "n2": "a", "n3": "b"}
		n1, n2, n3 := f.start("n1", 3, ""), f.start("n2", 3, ""), f.start("n3", 3, "")
		told := func(by *node) func() bool {
			return func() bool {
				table := by.routes.Table()
				if table == nil {
					return false
				}
				for _, n := range table.Nodes {
					if n.Zone != f.zones[n.Name] {
						return false
					}
				}
				return len(table.Nodes) == 3 && table.Together() == 0
			}
		}
		f.until("the table has zones, and standbys go by them", told(n1))
		f.serving(n1, n2, n3)

		f.leave(n2)
		f.zones["n2"] = "c"
		n2 = f.start("n2", 3, "")
		f.until("a node that comes back elsewhere says so", told(n3))

		n1.kill() // with its zone: the others have all of it
		f.serving(n2, n3)
		f.next(7)
	})
}
