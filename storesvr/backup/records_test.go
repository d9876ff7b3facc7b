package backup

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// records are what nodes of several builds write as JSON, with the fields of protocol 2. An older
// build drops a field that it does not know when it writes the record back.
var records = []struct {
	record any
	fields string
}{
	{disk.Identity{}, "Format Cluster UUID Name Era N R W Names Mapping Learner Zone"},
	{disk.Members{}, "Version List R W Filled"},
	{disk.Floors{}, "Floors Stamp"},
	{disk.Stamp{}, "Margin Since"},
	{disk.Journal{}, "ID Batches"},
	{quorum.Floors{}, "Tag Worker"},
	{quorum.Member{}, "UUID Name Addr Learner Zone"},
	{quorum.MemberList{}, "Version R W Members"},
	{quorum.Claim{}, "Store By Boot Commits Seal"},
	{seq.Mapping{}, "Spaces"},
	{seq.Space{}, "Name First Sections Step MaxStep Mode MaxJump KeyHash Window Added"},
	{sets.Record{}, "Name Root RootCluster Rest Runs"},
	{sets.Run{}, "Range Place"},
	{sets.Place{}, "State Move To By Above Was"},
	{sets.Map{}, "Version Last Sets Moves Restored Heard In By Ceilings"},
	{sets.Set{}, "Name Cluster Addrs"},
	{sets.Move{}, "ID From To Sections Begun"},
	{Manifest{}, "Cluster Era Members Mapping Sources Taken Registers LeaseBound Floors Version SignedBy"},
}

// laterFields are the fields that came since: their first protocol, and what becomes of them where
// an older build is at work.
var laterFields = map[string]struct {
	protocol int
	older    string
}{
	"disk.Members.Pending":          {3, "reads a bound store as complete, as it does itself; an adopted list has none"},
	"quorum.Floors.Section":         {3, "is kept away: the format of the database and of the backup"},
	"quorum.MemberList.Incarnation": {3, "decides a list without it; stores keep the one that they have, in a record of its own"},
	"quorum.Claim.Start":            {3, "drops it: of that store the starts and commits alone are remembered"},
	"quorum.Claim.StartSeal":        {3, "drops it, with Start"},
	"sets.Set.Incarnation":          {3, "is kept away where a build of 3 added a Set; else drops it, and absent means not known"},
	"seq.Space.Tickets":             {4, "is kept away by the required protocol, which a space with tickets raises before it is made"},
	"backup.Manifest.Required":      {3, "is kept away from 3 on: the format of the backup; 2 is what its own records say"},
}

func TestEachFieldOfARecordHasItsFirstProtocol(t *testing.T) {
	found := map[string]bool{}
	for _, row := range records {
		of := reflect.TypeOf(row.record)
		before := strings.Fields(row.fields)
		var now []string
		for field := range of.Fields() {
			now = append(now, field.Name)
			name := of.String() + "." + field.Name
			if slices.Contains(before, field.Name) {
				continue
			}
			found[name] = true
			if later := laterFields[name]; later.older == "" || later.protocol <= 2 || later.protocol > version.Protocol {
				t.Errorf("%s is new: say in laterFields from which protocol on, and what an older build does to it", name)
			}
		}
		for _, name := range before {
			if !slices.Contains(now, name) {
				t.Errorf("%s.%s is gone: builds of protocol 2 need it", of, name)
			}
		}
	}
	for name := range laterFields {
		if !found[name] {
			t.Errorf("%s is in laterFields, and no record has it", name)
		}
	}
}
