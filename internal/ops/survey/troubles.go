package survey

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// cause ranks what can be wrong: what keeps others from being well comes before what it
// causes, so that mending goes from the top.
type cause int

const (
	noAllocators cause = iota
	noQuorum
	distrustedDisk
	protocolOld
	storeAway
	diskFull
	allocatorAway
	allocatorNotReady
	uidMemory
	ticketsShort
	frozenTable
	sectionsUnowned
	sectionsSpent
	moveOpen
	routerAway
	zonesTogether
	clockOff
	idsAhead
	sectionsEnding
	keysBehind
	idsShared
	workersShort
	layoutEnds
)

// trouble is one thing that is wrong with a cluster, and what to do about it.
type trouble struct {
	cause  cause
	breaks bool   // a part of the numbers is not handed out
	what   string // one line
	do     string // a command, with the node to give it on unless it is seqctl's
	why    string // what it does, or what to think of before
}

// start is the command that starts a node's daemon.
func start(unit, node string) string { return "on " + node + ": systemctl start seqsvr-" + unit }

// troubles are all that is wrong with any Set, by cause.
func (s *Survey) troubles() []trouble {
	all := append(s.ownTroubles(), s.moveTroubles(time.Now())...)
	all = append(append(all, s.setTroubles()...), s.idTroubles...)
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(a.cause, b.cause) })
	return all
}

// elsewhere is what to think of when addresses do not resolve.
const elsewhere = "where the addresses of the nodes resolve, in Kubernetes from a pod (deploy/kubernetes/README.md); this says nothing of the cluster"

// unresolved reports whether a node was not asked, because its name means nothing here.
func unresolved(err error) bool {
	text := err.Error()
	return strings.Contains(text, "no such host") || strings.Contains(text, "server misbehaving") || strings.Contains(text, "name resolution")
}

// ownTroubles are all that is wrong with the Set at hand, by cause.
func (s *Survey) ownTroubles() []trouble {
	best := s.View()
	if best == nil {
		nodes := s.Cluster.Table.Nodes
		if len(nodes) == 0 {
			return []trouble{{noAllocators, true, "the map of Sets has no address of it", "seqctl set list", "and seqctl set add, which tells the map the addresses"}}
		}
		t := trouble{cause: noAllocators, breaks: true, what: fmt.Sprintf("none of %d AllocSvr answers", len(nodes)),
			do: start("allocsvr", nodes[0].Name), why: "and the others; the last line of a daemon's log says why it ended"}
		for _, err := range s.Errs { // they run, and do not speak with this caller
			if errors.Is(err, seq.ErrUnauthenticated) || errors.Is(err, seq.ErrForbidden) {
				t.what, t.do = t.what+" this caller: "+err.Error(), "seqctl status --tls-ca CA --token-file TOKEN"
				t.why = "with the token or certificate of an operator or a reader"
				break
			}
			if unresolved(err) {
				t.what, t.do, t.why = fmt.Sprintf("none of %d AllocSvr is reachable from here: %s", len(nodes), LastReason(err)), "seqctl status", elsewhere
				break
			}
			if errors.Is(err, errOtherCluster) {
				t.what += ": " + err.Error()
				break
			}
			reason, _, _ := strings.Cut(LastReason(err), " (")
			if why := SecurityHint(reason); why != "" {
				t.what, t.do, t.why = t.what+": "+reason, "seqctl status --tls-ca CA --tls-cert CERT --tls-key KEY", why
				break
			}
		}
		return []trouble{t}
	}
	all := append(s.storeTroubles(best), s.nodeTroubles()...)
	if why := best.GetFrozen(); why != "" {
		all = append(all, trouble{frozenTable, false, "the route table is frozen: " + why, "seqctl rebalance",
			"once you know what the nodes that went have in common; nothing moves until then"})
	}
	if n := best.GetSectionsUnowned(); n > 0 {
		all = append(all, trouble{sectionsUnowned, true, fmt.Sprintf("%d of %d sections have no owner", n, best.GetSections()), "seqctl leases",
			"the standbys take them within seconds; if not, it shows who still has them"})
	}
	for _, m := range best.GetMembers() { // of stores and allocators there is better knowledge
		if m.GetState() == "dead" && m.GetRole() == "router" {
			all = append(all, trouble{routerAway, false, fmt.Sprintf("router %s is dead since %s", m.GetName(), Stamp(m.GetSinceUnixMs())),
				start("router", m.GetName()), "callers use the others meanwhile"})
		}
	}
	all = append(all, protocolTroubles(best)...)
	all = append(all, s.zoneTroubles(best)...)
	all = append(all, s.endTroubles(best)...)
	if log := best.GetDevLog(); log != "" {
		for i := range all {
			if c := all[i].cause; !onEtcd(best) || c != storeAway && c != noQuorum { // an etcd is no part of it
				all[i].inDev(log)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(a.cause, b.cause) })
	return all
}

// inDev puts advice for nodes that share one process with all others in place of that for
// services: there is none of them to start alone.
func (t *trouble) inDev(log string) {
	switch t.cause {
	case allocatorNotReady:
		t.do, t.why = "tail "+log, "all nodes starve together in one seqctl dev: leave it more of the machine, or try --lease 10s"
	case noAllocators, storeAway, noQuorum, allocatorAway, routerAway:
		t.do, t.why = "tail "+log, "all nodes share one process, seqctl dev: if one has ended, stop dev and start it again"
	}
}

// storeTroubles returns the troubles of the stores, and a shortage of stores.
func (s *Survey) storeTroubles(best *pb.StatusReply) (all []trouble) {
	if best.GetBrief() {
		return []trouble{{storeAway, false, "no AllocSvr says in time what the stores have", "seqctl status", "it waits for longer; if it hangs too, the stores do"}}
	}
	if onEtcd(best) {
		return s.etcdTroubles(best)
	}
	all = s.storeClockTroubles(best.GetStores())
	n, lost, full := len(best.GetStores()), 0, 0
	var first string
	for _, store := range best.GetStores() {
		name, state := s.storeName(store), store.GetState()
		switch {
		case strings.HasPrefix(state, "distrusted"):
			lost++
			all = append(all, trouble{distrustedDisk, false, fmt.Sprintf("store %s does not vote: %s", name, state),
				"seqctl store replace --dead " + name + " --new HOST:PORT", "its disk is an old copy: it votes no more (docs/operations.md#seqstoredistrusted)"})
		case !store.GetReachable() || state != "voting":
			lost++
			first = cmp.Or(first, name)
			what := fmt.Sprintf("store %s is not reachable", name)
			switch {
			case strings.HasPrefix(state, quorum.StateLeftOut):
				what = fmt.Sprintf("store %s is %s", name, state)
			case store.GetReachable():
				what = fmt.Sprintf("store %s does not vote: %s", name, state)
			}
			all = append(all, trouble{storeAway, false, what, start("storesvr", name),
				fmt.Sprintf("with its disk; the others bear no second loss out of %d", n)})
		case store.GetNearlyFull():
			full++
			all = append(all, trouble{diskFull, false, fmt.Sprintf("disk of store %s is nearly full, %s free: no writes", name, Size(store.GetDiskFreeBytes())),
				"on " + name + ": df -h DATA-DIR", "make room on that file system; writes go on by themselves"})
		}
	}
	switch {
	case lost*2 >= n && lost > 0 && first != "":
		all = append(all, trouble{noQuorum, true, fmt.Sprintf("%d of %d stores are away: no quorum", lost, n), start("storesvr", first),
			"with its disk; a majority must vote before numbers are handed out again"})
	case lost*2 >= n && lost > 0:
		all = append(all, trouble{noQuorum, true, fmt.Sprintf("%d of %d stores are away: no quorum", lost, n),
			"seqctl store status", "and docs/operations.md#the-quorum-is-lost: too many disks are old copies"})
	case full > 0 && (lost+full)*2 >= n:
		all = append(all, trouble{diskFull, true, fmt.Sprintf("disks nearly full: only %d of %d stores take writes", n-lost-full, n),
			all[slices.IndexFunc(all, func(t trouble) bool { return t.cause == diskFull })].do, "make room on that file system; writes go on by themselves"})
	}
	return all
}

// nodeTroubles returns the troubles of the AllocSvr.
func (s *Survey) nodeTroubles() (all []trouble) {
	for _, node := range s.Cluster.Table.Nodes {
		reply := s.Replies[node.Name]
		switch {
		case reply == nil && !node.Drained:
			if err := s.Errs[node.Name]; err != nil && unresolved(err) {
				all = append(all, trouble{allocatorAway, false, fmt.Sprintf("alloc %s is not reachable from here: %s", node.Name, LastReason(err)), "seqctl status", elsewhere})
				continue
			}
			all = append(all, trouble{allocatorAway, false, fmt.Sprintf("alloc %s does not answer", node.Name), start("allocsvr", node.Name),
				"others serve its sections meanwhile; for good: seqctl drain " + node.Name})
		case reply != nil && !reply.GetReady() && !node.Drained:
			all = append(all, trouble{allocatorNotReady, false, fmt.Sprintf("alloc %s is not ready: %s", node.Name, reply.GetReason()),
				"on " + node.Name + ": journalctl -u seqsvr-allocsvr -n 20", "if it lasts longer than a lease: its network to the stores, or a machine that stands still"})
		}
		for _, k := range reply.GetKeyHashes() {
			if latest, known := s.latestHash(reply, k); known && latest != k.GetVersion() {
				all = append(all, trouble{keysBehind, false, fmt.Sprintf("alloc %s hashes the string keys of space %s as before the last rehash", node.Name, k.GetSpace()),
					"on " + node.Name + ": systemctl restart seqsvr-allocsvr", "one after the other; until all have, sections that move between them skip numbers"})
			}
		}
		if t, short := memoryTrouble(node.Name, reply); short {
			all = append(all, t)
		}
		if t, short := ticketTrouble(node.Name, reply); short {
			all = append(all, t)
		}
		if t, off := clockTrouble(node.Name, reply); off {
			all = append(all, t)
		}
	}
	return all
}

// memoryTrouble is that the counters of UIDs take four fifths of the memory that they may, or
// all of it. They are dropped from 60 % on, as far as they are cold.
func memoryTrouble(name string, reply *pb.StatusReply) (t trouble, short bool) {
	used, budget := reply.GetUidMemoryBytes(), reply.GetUidMemoryBudget()
	if budget == 0 || used/4 < budget/5 {
		return t, false
	}
	full := used >= budget
	what := fmt.Sprintf("alloc %s: counters of UIDs take %s of %s", name, Size(used), Size(budget))
	if full {
		what += ", others are refused"
	}
	return trouble{uidMemory, full, what, "on " + name + ": systemctl reload seqsvr-allocsvr",
		"with a larger uid-memory, or add AllocSvr: too few UIDs are idle to drop their counters"}, true
}

// judge says how well the cluster is, and everything that is wrong, the worst first.
func judge(all []trouble) (h Health, worst []trouble) {
	worst = slices.Clone(all)
	slices.SortStableFunc(worst, func(a, b trouble) int {
		return cmp.Compare(map[bool]int{true: 0, false: 1}[a.breaks], map[bool]int{true: 0, false: 1}[b.breaks])
	})
	switch {
	case len(worst) == 0:
		return Healthy, worst
	case worst[0].breaks:
		return Failed, worst
	}
	return Degraded, worst
}

// latestHash is the version that the stores have of how a space's string keys are hashed, which
// a brief reply does not say.
func (s *Survey) latestHash(reply *pb.StatusReply, of *pb.KeyHash) (version uint64, known bool) {
	if !reply.GetBrief() {
		return of.GetLatest(), true
	}
	for _, k := range s.View().GetKeyHashes() {
		if k.GetSpace() == of.GetSpace() {
			return k.GetLatest(), !s.View().GetBrief()
		}
	}
	return 0, false
}

// notes returns the notes of all Sets.
func (s *Survey) notes() []string {
	out := s.ownNotes()
	for _, of := range s.sets {
		if of == s {
			continue
		}
		for _, note := range of.ownNotes() {
			out = append(out, fmt.Sprintf("Set %s: %s", of.Cluster.Set, note))
		}
	}
	return out
}

// ownNotes are what is as an operator wanted it, and worth a reminder.
func (s *Survey) ownNotes() []string {
	out := []string{}
	if best := s.View(); best != nil && len(best.GetStores()) > 0 {
		last := slices.MaxFunc(best.GetStores(), func(a, b *pb.StoreStatus) int { return cmp.Compare(a.GetWorkersKeptUs(), b.GetWorkersKeptUs()) })
		if kept := last.GetWorkersKeptUs(); kept > 0 {
			out = append(out, KeptNote(last.GetWorkerFloorMs(), time.Duration(kept)*time.Microsecond))
		}
	}
	out = append(out, s.protocolNotes()...)
	out = append(out, s.exposed()...)
	out = append(out, s.zoneNotes()...)
	out = append(out, s.refusalNotes()...)
	out = append(out, s.ticketNotes()...)
	for _, node := range s.Cluster.Table.Nodes {
		if !node.Drained {
			continue
		}
		switch reply := s.Replies[node.Name]; {
		case reply == nil:
			out = append(out, fmt.Sprintf("alloc %s is drained and does not answer; nothing needs it", node.Name))
		case reply.GetSectionsOwned() > 0:
			out = append(out, fmt.Sprintf("alloc %s is draining, %d sections to go", node.Name, reply.GetSectionsOwned()))
		default:
			out = append(out, fmt.Sprintf("alloc %s is drained; seqctl undrain %s gives it sections again", node.Name, node.Name))
		}
	}
	if n := s.View().GetSectionsMoving(); n > 0 {
		out = append(out, fmt.Sprintf("%d of %d sections are being handed over at this moment; their callers wait for it", n, s.View().GetSections()))
	}
	return out
}

// exposed names the nodes that take plaintext from other machines, a line a role: by the
// membership, and each AllocSvr by its own word.
func (s *Survey) exposed() (out []string) {
	byRole := map[string][]string{}
	for _, node := range s.Cluster.Table.Nodes {
		for _, m := range s.Replies[node.Name].GetMembers() {
			if m.GetExposed() && m.GetState() == "alive" {
				byRole[m.GetRole()] = append(byRole[m.GetRole()], m.GetName())
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(byRole)) {
		names := slices.Sorted(slices.Values(byRole[role]))
		out = append(out, fmt.Sprintf("no TLS towards other machines (docs/security.md): %s %s", role, strings.Join(slices.Compact(names), ", ")))
	}
	return out
}

// KeptNote says that snowflake worker ids are kept back after a restore, until a moment in
// milliseconds since 1970, and how long that still is.
func KeptNote(untilMS uint64, left time.Duration) string {
	return fmt.Sprintf("no snowflake IDs before %s, in %v: windows from before the restore may be in use; if none is: seqctl store windows-over --reason WHY",
		time.UnixMilli(int64(untilMS)).UTC().Format("2006-01-02 15:04:05 UTC"), left.Round(time.Second))
}

// storeName is what people call a store: by itself, by the membership, or its address.
func (s *Survey) storeName(store *pb.StoreStatus) string {
	return cmp.Or(store.GetName(), s.storeNames()[store.GetAddr()], store.GetAddr())
}

// Size is bytes in at most four digits.
func Size(bytes uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	n, unit := float64(bytes), 0
	for n >= 1024 && unit < len(units)-1 {
		n, unit = n/1024, unit+1
	}
	if n >= 10 || unit == 0 {
		return fmt.Sprintf("%.0f %s", n, units[unit])
	}
	return fmt.Sprintf("%.1f %s", n, units[unit])
}

// sections of a drained or living node in a word.
func allocState(node seq.Node, reply *pb.StatusReply) string {
	switch {
	case reply == nil:
		return "no answer"
	case node.Drained && reply.GetSectionsOwned() > 0:
		return "draining"
	case node.Drained:
		return "drained"
	case !reply.GetReady():
		return "not ready"
	}
	return "ready"
}
