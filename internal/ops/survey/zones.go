package survey

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
)

const zonesRunbook = "docs/deploy.md#zones"

// storeZone is the zone of a store by its own word, or by the membership's of one that does
// not answer.
func (s *Survey) storeZone(store *pb.StoreStatus) string {
	name := s.storeName(store)
	for _, m := range s.View().GetMembers() {
		if m.GetRole() == "store" && m.GetName() == name {
			return cmp.Or(store.GetZone(), m.GetZone())
		}
	}
	return store.GetZone()
}

// zoneTroubles returns the zones whose loss callers would notice for longer than the loss of a node.
func (s *Survey) zoneTroubles(best *pb.StatusReply) (all []trouble) {
	if n := best.GetSectionsOneZone(); n > 0 {
		all = append(all, trouble{zonesTogether, false, fmt.Sprintf("%d of %d sections have their standby in their owner's zone", n, best.GetSections()),
			"seqctl route", "it passes once a node of another zone is there; a frozen table stays as it is (" + zonesRunbook + ")"})
	}
	if fatal, named := s.fatalZones(best); len(fatal) > 0 && named >= quorum.FewestZones {
		all = append(all, trouble{zonesTogether, false, fatalText(fatal, best), "seqctl store status", "put a store of it into another zone: seqctl store replace (" + zonesRunbook + ")"})
	}
	return all
}

// fatalZones are the zones whose loss leaves fewer than W stores, by name; and how many zones
// there are in which something is.
func (s *Survey) fatalZones(best *pb.StatusReply) (fatal []string, named int) {
	zones := s.Cluster.Table.Zones()
	for _, m := range best.GetMembers() {
		zones[m.GetZone()] = true
	}
	var stores []string
	for _, store := range best.GetStores() {
		stores = append(stores, s.storeZone(store))
		zones[stores[len(stores)-1]] = true
	}
	delete(zones, "")
	if w := int(best.GetW()); w > 0 { // builds of before do not tell it
		fatal = quorum.Fatal(stores, w)
	}
	return fatal, len(zones)
}

func fatalText(fatal []string, best *pb.StatusReply) string {
	return fmt.Sprintf("the loss of zone %s leaves fewer than the %d stores that a write needs", strings.Join(fatal, " or "), best.GetW())
}

// zoneNotes tell what a loss costs that only a further zone, or more AllocSvr, would help: of two
// zones one has W stores whatever is done, and a zone may have so many of the AllocSvr that the
// others could not carry what it has twice over.
func (s *Survey) zoneNotes() []string {
	weights, total := map[string]uint32{}, uint32(0)
	for _, n := range s.Cluster.Table.Nodes {
		if !n.Drained {
			weights[n.Zone] += n.Weight
			total += n.Weight
		}
	}
	out := []string{}
	if fatal, named := s.fatalZones(s.View()); len(fatal) > 0 && named == quorum.FewestZones-1 {
		out = append(out, fatalText(fatal, s.View())+", and there is no third zone to put one into")
	}
	for _, zone := range slices.Sorted(maps.Keys(weights)) {
		if left := total - weights[zone]; zone != "" && left > 0 && weights[zone] > left {
			out = append(out, fmt.Sprintf("zone %s has %d %% of the AllocSvr by weight: without it the others carry %.1f times as much each",
				zone, 100*weights[zone]/total, float64(total)/float64(left)))
		}
	}
	return out
}
