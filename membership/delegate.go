//go:build !wasip1

package membership

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/seqsvr/seqsvr/seq"
)

// noticeKind is the first byte of a departure notice. Messages of other kinds are passed over, so that
// a later version may add some.
const noticeKind = 1

// maxStateNotices bounds the notices sent along with a full state exchange.
const maxStateNotices = 256

// notice is a departure on its way through the gossip queue.
type notice struct {
	msg  []byte
	sent chan struct{} // closed once it was sent often enough
}

var (
	_ memberlist.UniqueBroadcast  = (*notice)(nil)
	_ memberlist.Delegate         = delegate{}
	_ memberlist.EventDelegate    = delegate{}
	_ memberlist.ConflictDelegate = delegate{}
	_ memberlist.AliveDelegate    = delegate{}
	_ memberlist.MergeDelegate    = delegate{}
)

func newNotice(d departure) *notice {
	body, err := json.Marshal(d)
	if err != nil {
		panic("membership: a string and an integer always encode: " + err.Error())
	}
	return &notice{msg: append([]byte{noticeKind}, body...), sent: make(chan struct{})}
}

// Invalidates is never asked for unique broadcasts.
func (n *notice) Invalidates(memberlist.Broadcast) bool { return false }

// Message returns the bytes to send.
func (n *notice) Message() []byte { return n.msg }

// Finished is called once by the queue.
func (n *notice) Finished() { close(n.sent) }

// UniqueBroadcast marks notices as independent of each other.
func (n *notice) UniqueBroadcast() {}

// delegate receives memberlist's callbacks. Most come under memberlist's lock: they take View.mu, do
// no I/O but logging, and never call memberlist.
type delegate struct{ v *View }

// NodeMeta returns the node's encoded metadata. Its size was checked when it was set.
func (d delegate) NodeMeta(limit int) []byte {
	b, err := d.v.Self().Encode()
	if err != nil || len(b) > limit {
		d.v.log.Error("own member metadata does not encode", "error", err, "bytes", len(b), "limit", limit)
		return nil
	}
	return b
}

// NotifyMsg takes a departure notice and passes it on the first time it is heard.
func (d delegate) NotifyMsg(msg []byte) {
	if len(msg) == 0 || msg[0] != noticeKind {
		return
	}
	var dep departure
	if err := json.Unmarshal(msg[1:], &dep); err != nil {
		d.v.log.Debug("departure notice not understood", "error", err)
		return
	}
	d.depart(dep)
}

// depart records a notice. The queue is filled after mu is released: it has a lock of its own.
func (d delegate) depart(dep departure) {
	v := d.v
	if !validName(dep.Name) {
		return
	}
	v.mu.Lock()
	if dep.Name == v.cfg.Name && dep.Session == v.meta.Session {
		v.mu.Unlock() // an echo of the node's own
		return
	}
	what, fresh := v.roster.notice(dep, time.Now())
	v.note(dep.Name, what)
	v.mu.Unlock()
	if fresh {
		v.notices.QueueBroadcast(newNotice(dep))
	}
}

// GetBroadcasts returns the notices due.
func (d delegate) GetBroadcasts(overhead, limit int) [][]byte {
	return d.v.notices.GetBroadcasts(overhead, limit)
}

// LocalState sends the notices along with a full exchange, for nodes that missed them: memberlist
// tells such a node that a member is gone, but not to its delegate that it left.
func (d delegate) LocalState(bool) []byte {
	v := d.v
	v.mu.Lock()
	list := make([]departure, 0, min(len(v.roster.departed), maxStateNotices))
	for dep := range v.roster.departed {
		if len(list) == maxStateNotices {
			break
		}
		list = append(list, dep)
	}
	v.mu.Unlock()
	b, err := json.Marshal(list)
	if err != nil {
		v.log.Error("departure notices do not encode", "error", err)
		return nil
	}
	return b
}

// MergeRemoteState takes the notices of another node.
func (d delegate) MergeRemoteState(buf []byte, _ bool) {
	var list []departure
	if err := json.Unmarshal(buf, &list); err != nil {
		d.v.log.Debug("departure notices not understood", "error", err)
		return
	}
	for _, dep := range list[:min(len(list), maxStateNotices)] {
		d.depart(dep)
	}
}

// NotifyAlive refuses a node of another cluster that has the same name: the label of both is alike. Without
// it two such clusters would be one view, also by way of members of the version before, which tell no
// incarnation. A member that turns out to be such a node is listed as dead.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	v := d.v
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.foreign(n)
	if m := v.roster.members[n.Name]; err != nil && !m.Self && m.Gossip == n.Address() {
		v.note(n.Name, v.roster.gone(n.Name, time.Now()))
	}
	return err
}

// NotifyMerge refuses to join nodes of which none is of this cluster.
func (d delegate) NotifyMerge(nodes []*memberlist.Node) error {
	v := d.v
	v.mu.Lock()
	defer v.mu.Unlock()
	var last error
	for _, n := range nodes {
		err := v.foreign(n)
		if err == nil && n.Name != v.cfg.Name {
			return nil
		}
		last = cmp.Or(err, last)
	}
	return last
}

// foreign is seq.ErrForeignCluster for a node of another cluster, or of another restore of one era. A node of
// another era is a member. The caller holds mu.
func (v *View) foreign(n *memberlist.Node) error {
	meta, _ := DecodeMeta(n.Name, n.Meta) // what is not understood is told by alive
	err := v.meta.Incarnation.Check(meta.Incarnation)
	if !errors.Is(err, seq.ErrForeignCluster) {
		return nil
	}
	err = fmt.Errorf("incarnation %v, this node is of %v: %w", meta.Incarnation, v.meta.Incarnation, err)
	if v.strangers.first(n.Address(), time.Now()) {
		v.log.Warn("member of another cluster of this name is left out", "member", n.Name, "gossip", n.Address(), "addr", meta.Addr, "own", v.addr, "error", err)
	}
	return err
}

// NotifyJoin records a node that appeared or came back.
func (d delegate) NotifyJoin(n *memberlist.Node) { d.alive(n) }

// NotifyUpdate records new metadata of a live node.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.alive(n) }

func (d delegate) alive(n *memberlist.Node) {
	v := d.v
	meta := v.decode(n)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note(n.Name, v.roster.alive(meta, n.Address(), time.Now()))
}

// NotifyLeave records a node that is gone. Late calls, from suspicion timers after Close, do no harm.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	v := d.v
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note(n.Name, v.roster.gone(n.Name, time.Now()))
}

// NotifyConflict reports two processes of one name. memberlist keeps the existing one. If the name is
// this node's, the others may refuse it, so the rejoin loop goes on trying until the name is free.
func (d delegate) NotifyConflict(existing, other *memberlist.Node) {
	v := d.v
	kept := Member{Meta: v.decode(existing), Gossip: existing.Address()}
	refused := Member{Meta: v.decode(other), Gossip: other.Address()}
	v.mu.Lock()
	defer v.mu.Unlock()
	if existing.Name == v.cfg.Name && kept.Meta.Session != refused.Meta.Session {
		v.rejoin.refused = true
	}
	if err := v.roster.conflict(kept, refused, time.Now()); err != nil {
		v.log.Warn("member name conflict", "error", err)
	}
}

// decode never fails: a member of unknown metadata is listed by its name alone.
func (v *View) decode(n *memberlist.Node) Meta {
	m, err := DecodeMeta(n.Name, n.Meta)
	if err != nil {
		v.log.Warn("member metadata not understood", "member", n.Name, "addr", n.Address(), "error", err)
	}
	return m
}

// note logs a change and updates the count of other members. The caller holds mu.
func (v *View) note(name string, what change) {
	if what == "" {
		return
	}
	v.others.Store(int64(v.roster.others()))
	if what != updated {
		m := v.roster.members[name]
		v.log.Info("member "+string(what), "member", name, "role", string(m.Meta.Role), "gossip", m.Gossip, "session", m.Meta.Session)
	}
}
