package auth

import (
	"fmt"
	"strconv"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Change tells what a message changes, for people: which node, section, tag or UID. ok is
// false for one that changes nothing out of the ordinary.
type Change func(message any) (target string, ok bool)

// maxTarget bounds what callers have written into logs and events, in bytes.
const maxTarget = 200

func changing(target func(message any) string) Access {
	return Access{Roles: []Role{Operator}, Change: func(m any) (string, bool) {
		if r, ok := m.(interface{ GetCheckOnly() bool }); ok && r.GetCheckOnly() {
			return "", false
		}
		text := target(m)
		return text[:min(len(text), maxTarget)], true
	}}
}

// whole is a change of the whole cluster or store.
func whole(any) string { return "" }

func undone(undo bool) string {
	if undo {
		return ", undone"
	}
	return ""
}

func nodeOf(m any) string {
	r, _ := m.(*pb.DrainRequest)
	return "node " + strconv.Quote(r.GetNode()) + undone(r.GetUndo())
}

func moveOf(m any) string {
	r, _ := m.(*pb.MoveRequest)
	if r.GetNode() == "" {
		return fmt.Sprintf("section %d, unpinned", r.GetSection())
	}
	return fmt.Sprintf("section %d to node %q", r.GetSection(), r.GetNode())
}

func mapOf(m any) string {
	r, _ := m.(*pb.ChangeSetMapRequest)
	switch {
	case r.GetAdd() != nil:
		return fmt.Sprintf("Set %q at %q", r.GetAdd().GetSet().GetName(), r.GetAdd().GetSet().GetAddrs())
	case r.GetBegin() != nil:
		return fmt.Sprintf("sections to Set %q", r.GetBegin().GetTo())
	case r.GetArrive() != nil:
		return fmt.Sprintf("move %d, arrived", r.GetArrive().GetMove())
	}
	return fmt.Sprintf("move %d, aborted", r.GetAbort().GetMove())
}

func joinOf(m any) string {
	r, _ := m.(*pb.JoinSetRequest)
	return fmt.Sprintf("Set %q of %q", r.GetName(), r.GetRoot())
}

func stepOf(m any) string {
	r, _ := m.(*pb.SetStepRequest)
	return fmt.Sprintf("%v, move %d", r.GetOp(), r.GetMove())
}

// namedOf is a namespace or tag, by the name that its message has.
func namedOf(m any) string {
	undo := ""
	if r, ok := m.(interface{ GetUndo() bool }); ok {
		undo = undone(r.GetUndo())
	}
	switch r := m.(type) {
	case interface{ GetTag() string }:
		return "tag " + strconv.Quote(r.GetTag()) + undo
	case *pb.SegmentPutRequest:
		if all := r.GetTags(); len(all) > 0 {
			return fmt.Sprintf("tag %q and %d more", all[0].GetTag(), len(all)-1)
		}
		return "tag " + strconv.Quote(r.GetTag().GetTag())
	case interface{ GetName() string }:
		return "namespace " + strconv.Quote(r.GetName()) + undo
	case interface{ GetNamespace() string }:
		return "namespace " + strconv.Quote(r.GetNamespace()) + undo
	}
	return ""
}

func fillOf(m any) string {
	r, _ := m.(*pb.FillRequest)
	return fmt.Sprintf("%d registers", len(r.GetRecords()))
}

func reasonOf(m any) string {
	r, _ := m.(*pb.WindowsOverRequest)
	return "reason " + strconv.Quote(r.GetReason())
}

func listOf(m any) (string, bool) {
	r, _ := m.(*pb.AdoptRequest)
	return fmt.Sprintf("member list %d", r.GetList().GetVersion()), true
}

func mappingOf(m any) (string, bool) {
	r, _ := m.(*pb.ExtendRequest)
	return fmt.Sprintf("mapping of %d spaces", len(r.GetMapping().GetSpaces())), true
}

func spaceOf(m any) string {
	r, _ := m.(*pb.AddSpaceRequest)
	return fmt.Sprintf("space %.100q", r.GetSpace().GetName())
}

// forcedOf is a raise with force: the others are what callers do all day. A string key is
// theirs and stands in no log.
func forcedOf(m any) (string, bool) {
	r, _ := m.(*pb.RaiseRequest)
	key := "a string key"
	if r.GetKey() == "" {
		key = fmt.Sprintf("uid %d", r.GetUid())
	}
	return fmt.Sprintf("space %.100q %s to %d", SpaceName(r.GetSpace()), key, r.GetAtLeast()), r.GetForce()
}

func rehashOf(m any) string {
	r, _ := m.(*pb.RehashRequest)
	return fmt.Sprintf("string keys of space %q", SpaceName(r.GetSpace()))
}
