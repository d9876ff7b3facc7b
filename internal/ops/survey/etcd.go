package survey

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Engines are what keeps the registers.
const (
	EngineStores = "storesvr"
	EngineEtcd   = "etcd"
)

// EtcdMember is one member of an etcd that keeps the registers.
type EtcdMember struct {
	Version  string   `json:"version"`
	Leader   bool     `json:"leader"`
	Size     uint64   `json:"size_bytes"`
	InUse    uint64   `json:"in_use_bytes"`
	Quota    uint64   `json:"quota_bytes"` // zero if the member does not report it
	Alarms   []string `json:"alarms"`
	Restored string   `json:"restored"` // why nothing is served, if etcd was put back; else empty
}

func etcdMember(m *pb.EtcdMember) *EtcdMember {
	if m == nil {
		return nil
	}
	return &EtcdMember{Version: m.GetVersion(), Leader: m.GetLeader(), Size: m.GetSizeBytes(), InUse: m.GetInUseBytes(), Quota: m.GetQuotaBytes(),
		Alarms: append([]string{}, m.GetAlarms()...), Restored: m.GetRestored()}
}

// onEtcd says whether the registers are in etcd.
func onEtcd(best *pb.StatusReply) bool {
	return slices.ContainsFunc(best.GetStores(), func(s *pb.StoreStatus) bool { return s.GetEtcd() != nil })
}

func engineOf(best *pb.StatusReply) string {
	if onEtcd(best) {
		return EngineEtcd
	}
	return EngineStores
}

const etcdRunbook = "docs/etcd.md#"

// etcdTroubles returns the troubles of the members of etcd. Only etcd itself knows its quorum, because etcd
// may have more members than the AllocSvr ask.
func (s *Survey) etcdTroubles(best *pb.StatusReply) (all []trouble) {
	add := func(c cause, breaks bool, what, do, why string) {
		all = append(all, trouble{c, breaks, what, do, why})
	}
	stores := best.GetStores()
	addr := stores[max(0, slices.IndexFunc(stores, (*pb.StoreStatus).GetReachable))].GetAddr() // of one that answers, if any does
	silent, leaderless, stale, alarms := 0, "", false, []string{}
	for _, store := range stores {
		m, name := store.GetEtcd(), "etcd member "+s.storeName(store)
		for _, a := range m.GetAlarms() {
			alarms = append(alarms, a+" of "+s.storeName(store))
		}
		switch host, _, _ := strings.Cut(store.GetAddr(), ":"); {
		case !store.GetReachable():
			silent++
			add(storeAway, false, name+" is not reachable", "on "+host+": systemctl start etcd", "with its disk; if that is lost: etcdctl member remove, then add")
		case store.GetState() == stateNoLeader:
			leaderless = s.storeName(store)
		case strings.Contains(store.GetState(), seq.ErrStaleEra.Error()):
			stale = true
		case store.GetState() != "voting" && m.GetRestored() == "" && len(m.GetAlarms()) == 0:
			add(storeAway, false, name+": "+store.GetState(), "seqctl store status --etcd "+store.GetAddr(), "it tells what stands against its use")
		case store.GetNearlyFull():
			add(diskFull, false, fmt.Sprintf("%s: %s of a quota of %s", name, Size(m.GetSizeBytes()), Size(m.GetQuotaBytes())),
				"etcdctl defrag --cluster", "and shorten --auto-compaction-retention; at the quota nothing is served ("+etcdRunbook+"a-full-etcd)")
		}
	}
	if why := restoredWhy(best); why != "" {
		add(distrustedDisk, true, "etcd was put back to an older state: "+why, fmt.Sprintf("seqctl store restore --etcd %s --era N --cluster %s", addr, best.GetClusterId()),
			"with N above every era before, here at least "+fmt.Sprint(best.GetEra()+1)+" ("+etcdRunbook+"a-restored-etcd)")
	}
	if stale {
		add(distrustedDisk, true, fmt.Sprintf("alloc %s is of era %d, and etcd has a later one", best.GetNode(), best.GetEra()), "on "+best.GetNode()+": systemctl restart seqsvr-allocsvr",
			"and every other AllocSvr that runs since before the restore")
	}
	if len(alarms) > 0 {
		add(diskFull, true, "etcd takes no writes: alarm "+strings.Join(alarms, ", "), "etcdctl alarm list",
			"NOSPACE: compact, defrag, alarm disarm; CORRUPT: replace the member ("+etcdRunbook+"a-full-etcd)")
	}
	switch {
	case silent == len(stores):
		add(noQuorum, true, "no member of etcd is reachable", "seqctl store status --etcd "+addr, "leases end, and nothing is served until a majority of its members is back")
	case leaderless != "":
		add(noQuorum, true, "etcd has no leader, says "+leaderless, "seqctl store status --etcd "+addr, "a majority of its members must be back; an election takes a second or two")
	}
	return all
}

// stateNoLeader is StoreStatus.state of a member of etcd that knows no leader.
const stateNoLeader = "knows no leader"

func restoredWhy(best *pb.StatusReply) string {
	for _, store := range best.GetStores() {
		if why := store.GetEtcd().GetRestored(); why != "" {
			return why
		}
	}
	return ""
}
