package auth

import (
	"slices"
	"strconv"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Verb is what a caller does with a space, namespace or tag.
type Verb string

// The verbs of grants.
const (
	Take  Verb = "take"
	Read  Verb = "read"
	Raise Verb = "raise"
)

// Kind is what a grant is for.
type Kind string

// The kinds of scopes.
const (
	Space     Kind = "space"
	Namespace Kind = "namespace"
	Tag       Kind = "tag"
)

// Demand is what one part of a message asks for.
type Demand struct {
	Kind  Kind
	Name  string
	Verb  Verb
	Keys  int    // what a quota is charged
	Jump  uint64 // of a raise: by how much; 0 where that is not known yet
	Force bool   // of a raise
	// Within is the limit of a raise in its message. Zero means no limit. The guard lowers it to the limit
	// of the grant, and the AllocSvr, which knows the present number, enforces it.
	Within *uint64
}

// Access says which callers may call a method.
type Access struct {
	Roles  []Role
	Public bool // every caller may, without an identity
	// Abroad lets AllocSvr and StoreSvr of other Sets call the method as well. The rights of routers,
	// callers, readers and operators do not depend on the Set in their certificate.
	Abroad bool
	// Demands returns the grants that a caller needs for a message of the method. If nil, it needs none.
	Demands func(message any) []Demand
	// Change describes a change by an operator. The audit log records each such call with its principal. If
	// nil, the method changes nothing.
	Change Change
	// Node returns the node whose session a message of the method speaks for. If nil, a message speaks for
	// no session.
	Node func(message any) string
}

// May tells whether the role may call the method.
func (a Access) May(r Role) bool { return a.Public || slices.Contains(a.Roles, r) }

var (
	public   = Access{Public: true}
	anybody  = Access{Roles: Roles}
	session  = Access{Roles: []Role{Alloc, Operator}} // an operator's tools change documents at the stores
	describe = Access{Roles: []Role{Alloc, Store, Operator, Reader}}
	writing  = Access{Roles: session.Roles, Node: speakerOf}
	peer     = Access{Roles: []Role{Alloc}}
	looking  = Access{Roles: []Role{Router, Operator, Reader}}         // a router for its console, which asks who looks
	serving  = Access{Roles: []Role{Caller, Router, Operator, Reader}} // what needs no grant: routes, layouts
)

// taking returns the Access of callers with grants, and of the routers that act for them.
func taking(demands func(any) []Demand) Access {
	return Access{Roles: []Role{Caller, Router, Operator}, Demands: demands}
}

func reading(demands func(any) []Demand) Access {
	return Access{Roles: []Role{Caller, Router, Operator, Reader}, Demands: demands}
}

// Methods has every method of every daemon by its full name. Other methods are refused. It is read only.
var Methods = map[string]Access{
	pb.Sequence_Next_FullMethodName:       taking(ofOne(Take)),
	pb.Sequence_BatchNext_FullMethodName:  taking(ofBatch),
	pb.Sequence_Lookup_FullMethodName:     reading(ofOne(Read)),
	pb.Sequence_Current_FullMethodName:    reading(ofCurrent),
	pb.Sequence_Open_FullMethodName:       taking(ofOne(Take)),
	pb.Sequence_Done_FullMethodName:       taking(ofOne(Take)),
	pb.Sequence_Mark_FullMethodName:       reading(ofMark),
	pb.Sequence_Watch_FullMethodName:      reading(ofWatch), // keys without a grant are refused one by one
	pb.Sequence_Raise_FullMethodName:      {Roles: taking(nil).Roles, Demands: ofRaise, Change: forcedOf},
	pb.Sequence_Stream_FullMethodName:     reading(ofStream), // a reader's takes are refused one by one
	pb.Sequence_BatchRaise_FullMethodName: taking(ofRaises),
	pb.Sequence_Routes_FullMethodName:     serving,

	pb.Snowflake_Generate_FullMethodName:        taking(ofNamespace(Take)),
	pb.Snowflake_Delegate_FullMethodName:        taking(ofNamespace(Take)),
	pb.Snowflake_GiveBack_FullMethodName:        taking(ofNamespace(Take)),
	pb.Snowflake_Info_FullMethodName:            taking(ofNamespace(Take)), // it may get a worker id
	pb.Snowflake_Decode_FullMethodName:          serving,
	pb.Snowflake_Compose_FullMethodName:         serving,
	pb.Snowflake_Layouts_FullMethodName:         serving,
	pb.Snowflake_Namespaces_FullMethodName:      serving,
	pb.Snowflake_Workers_FullMethodName:         serving,
	pb.Snowflake_PutNamespace_FullMethodName:    changing(namedOf),
	pb.Snowflake_RetireNamespace_FullMethodName: changing(namedOf),

	pb.Segment_Take_FullMethodName:        taking(ofTag(Take)),
	pb.Segment_NextNumbers_FullMethodName: taking(ofTag(Take)),
	pb.Segment_ShowNumber_FullMethodName:  reading(ofTag(Read)),
	pb.Segment_Status_FullMethodName:      reading(ofTag(Read)), // all tags: a grant for *
	pb.Segment_List_FullMethodName:        serving,
	pb.Segment_Put_FullMethodName:         changing(namedOf),
	pb.Segment_Retire_FullMethodName:      changing(namedOf),

	pb.Store_Describe_FullMethodName:    describe,
	pb.Store_Bind_FullMethodName:        session,
	pb.Store_Vouch_FullMethodName:       session,
	pb.Store_Read_FullMethodName:        session,
	pb.Store_Prepare_FullMethodName:     writing,
	pb.Store_Step_FullMethodName:        writing,
	pb.Store_Stream_FullMethodName:      session, // the handler asks Speaks of its first message
	pb.Store_Renew_FullMethodName:       writing,
	pb.Store_Release_FullMethodName:     writing,
	pb.Store_Adopt_FullMethodName:       {Roles: session.Roles, Change: listOf},    // an AllocSvr brings lists to stores that missed them
	pb.Store_Extend_FullMethodName:      {Roles: session.Roles, Change: mappingOf}, // likewise mappings
	pb.Store_Require_FullMethodName:     session,                                   // likewise what a change of the rules requires of sessions
	pb.Store_Dump_FullMethodName:        changing(whole),
	pb.Store_Fill_FullMethodName:        changing(fillOf),
	pb.Store_WindowsOver_FullMethodName: changing(reasonOf),

	pb.Peer_Offer_FullMethodName: peer,
	pb.Peer_Take_FullMethodName:  peer,
	pb.Peer_Look_FullMethodName:  peer,

	pb.Peer_Refresh_FullMethodName: peer,
	pb.Peer_Ping_FullMethodName:    peer,
	pb.Peer_Hears_FullMethodName:   peer,

	pb.Admin_Status_FullMethodName:    looking,
	pb.Admin_Leases_FullMethodName:    looking,
	pb.Admin_Events_FullMethodName:    looking,
	pb.Router_Status_FullMethodName:   looking,
	pb.Admin_Drain_FullMethodName:     changing(nodeOf),
	pb.Admin_Move_FullMethodName:      changing(moveOf),
	pb.Admin_Rebalance_FullMethodName: changing(whole),
	pb.Admin_Rehash_FullMethodName:    changing(rehashOf),
	pb.Admin_AddSpace_FullMethodName:  changing(spaceOf),
	// Grants cannot say which readers may read every UID. Raises without force are no changes.
	pb.Sets_Map_FullMethodName:       {Roles: []Role{Alloc, Router, Caller, Reader, Operator}, Abroad: true}, // nodes of other Sets ask the root
	pb.Sets_Record_FullMethodName:    looking,
	pb.Sets_ChangeMap_FullMethodName: changing(mapOf),
	pb.Sets_Join_FullMethodName:      changing(joinOf),
	pb.Sets_Step_FullMethodName:      changing(stepOf),
	pb.Sets_Keys_FullMethodName:      {Roles: []Role{Operator}},
	pb.Sets_Stop_FullMethodName:      {Roles: []Role{Operator}},
	pb.Sets_Open_FullMethodName:      {Roles: []Role{Operator}},
	pb.Sets_Allot_FullMethodName:     {Roles: []Role{Alloc, Operator}, Abroad: true}, // an operator settles a restored root

	pb.Admin_Counters_FullMethodName:     {Roles: []Role{Operator}},
	pb.Admin_RaiseSection_FullMethodName: {Roles: []Role{Operator}},

	healthpb.Health_Check_FullMethodName: public,
	healthpb.Health_Watch_FullMethodName: public,
	healthpb.Health_List_FullMethodName:  public,

	grpc_reflection_v1.ServerReflection_ServerReflectionInfo_FullMethodName:      anybody,
	grpc_reflection_v1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: anybody,
}

// speakerOf returns the node that a request's session belongs to. A store derives the session from the node
// itself.
func speakerOf(m any) string {
	r, ok := m.(interface{ GetNode() string })
	if !ok {
		return ""
	}
	return r.GetNode()
}

// SpaceName is the space that a request means.
func SpaceName(name string) string {
	if name == "" {
		return seq.DefaultSpace
	}
	return name
}

// none is a message that is not of its method: nobody has a grant for it.
var none = []Demand{{}}

// ofOne returns the demand of a message for one key of a space.
func ofOne(verb Verb) func(any) []Demand {
	return func(m any) []Demand {
		switch r := m.(type) {
		case *pb.NextRequest, *pb.LookupRequest, *pb.OpenRequest:
			name := r.(interface{ GetSpace() string }).GetSpace()
			return []Demand{{Kind: Space, Name: SpaceName(name), Verb: verb, Keys: 1}}
		case *pb.DoneRequest: // Open was charged
			return []Demand{{Kind: Space, Name: SpaceName(r.GetSpace()), Verb: verb}}
		}
		return none
	}
}

func ofBatches(batches []*pb.Batch, verb Verb) []Demand {
	out := make([]Demand, len(batches))
	for i, b := range batches {
		out[i] = Demand{Kind: Space, Name: SpaceName(b.GetSpace()), Verb: verb, Keys: len(b.GetUids()) + len(b.GetKeys())}
	}
	return out
}

func ofBatch(m any) []Demand {
	r, ok := m.(*pb.BatchNextRequest)
	if !ok {
		return none
	}
	return ofBatches(r.GetBatches(), Take)
}

func ofCurrent(m any) []Demand {
	r, ok := m.(*pb.CurrentRequest)
	if !ok {
		return none
	}
	return ofBatches(r.GetBatches(), Read)
}

func ofMark(m any) []Demand {
	r, ok := m.(*pb.MarkRequest)
	if !ok {
		return none
	}
	return ofBatches(r.GetBatches(), Read)
}

// ofWatch charges for keys that are added, once.
func ofWatch(m any) []Demand {
	r, ok := m.(*pb.WatchRequest)
	if !ok {
		return none
	}
	return ofBatches(r.GetAdd(), Read)
}

func ofTickets(r *pb.TicketsRequest) (out []Demand) {
	for _, b := range r.GetOpens() {
		out = append(out, ofBatches([]*pb.Batch{b.GetKeys()}, Take)...)
	}
	for _, b := range r.GetDones() { // Open was charged
		out = append(out, Demand{Kind: Space, Name: SpaceName(b.GetKeys().GetSpace()), Verb: Take})
	}
	return out
}

func ofStream(m any) []Demand {
	r, ok := m.(*pb.StreamRequest)
	if !ok {
		return none
	}
	switch call := r.GetCall().(type) {
	case *pb.StreamRequest_Next:
		return ofBatch(call.Next)
	case *pb.StreamRequest_Current:
		return ofCurrent(call.Current)
	case *pb.StreamRequest_Tickets:
		return ofTickets(call.Tickets)
	}
	return nil // the handler refuses it
}

func ofRaise(m any) []Demand {
	r, ok := m.(*pb.RaiseRequest)
	if !ok {
		return none
	}
	return []Demand{{Kind: Space, Name: SpaceName(r.GetSpace()), Verb: Raise, Keys: 1, Force: r.GetForce(), Within: &r.MaxJump}}
}

// ofRaises bounds each key by the grant for its space.
func ofRaises(m any) []Demand {
	r, ok := m.(*pb.BatchRaiseRequest)
	if !ok {
		return none
	}
	out := make([]Demand, len(r.GetBatches()))
	for i, b := range r.GetBatches() {
		out[i] = Demand{Kind: Space, Name: SpaceName(b.GetSpace()), Verb: Raise, Keys: len(b.GetUids()) + len(b.GetKeys())}
		if b != nil {
			out[i].Within = &b.MaxJump
		}
	}
	return out
}

func ofTag(verb Verb) func(any) []Demand {
	return func(m any) []Demand {
		r, ok := m.(interface{ GetTag() string })
		if !ok {
			return none
		}
		return []Demand{{Kind: Tag, Name: r.GetTag(), Verb: verb, Keys: 1}}
	}
}

// defaultNamespace is the namespace of a request that names none; see snowflake.proto.
const defaultNamespace = "default"

func ofNamespace(verb Verb) func(any) []Demand {
	return func(m any) []Demand {
		r, ok := m.(interface {
			GetNamespace() string
			GetAlias() uint32
		})
		if !ok {
			return none
		}
		keys := 1
		if counted, ok := m.(*pb.SnowflakeGenerateRequest); ok {
			if keys = max(int(counted.GetCount()), 1); keys > seq.MaxIDs {
				keys = 0 // the handler refuses it
			}
		}
		one := Demand{Kind: Namespace, Name: NamespaceName(r.GetNamespace()), Verb: verb, Keys: keys}
		if r.GetAlias() == 0 {
			return []Demand{one}
		}
		alias := one
		alias.Name = strconv.FormatUint(uint64(r.GetAlias()), 10)
		if r.GetNamespace() == "" {
			return []Demand{alias}
		}
		alias.Keys = 0
		return []Demand{one, alias}
	}
}

// NamespaceName is the namespace that a text means: an alias without leading zeros, or
// the default for none.
func NamespaceName(text string) string {
	if text == "" {
		return defaultNamespace
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return strconv.FormatUint(n, 10)
	}
	return text
}
