package sim

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// pointName is a method as faults name it: the last word, in lower case, and the service
// before it where two have the same.
func pointName(method string) string {
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	switch path.Ext(service) {
	case ".Segment":
		return "tag." + strings.ToLower(name)
	case ".Snowflake":
		return "id." + strings.ToLower(name)
	case ".Sets":
		return "set." + strings.ToLower(name)
	}
	return strings.ToLower(name)
}

// methodName is what a method is called here. delayed says that faults have it come late.
type methodName struct {
	short, point, ok, out string // out: as it leaves its sender
	delayed               bool
}

// nameOf keeps the names of methods. Needs w.mu.
func (n *network) nameOf(method string) *methodName {
	name := n.names[method]
	if name == nil {
		p := pointName(method)
		name = &methodName{path.Base(method), p, p + ".ok", p + ".out", p == "prepare" || slices.Contains(etcdWrites, method)}
		n.names[method] = name
	}
	return name
}

// ballots are the items of a prepare or step.
func ballots(msg proto.Message) []ballot {
	var out []ballot
	switch wire := msg.(type) {
	case *pb.PrepareRequest:
		req, err := storewire.PrepareFromProto(wire)
		if err != nil {
			return nil
		}
		for _, it := range req.Items {
			out = append(out, ballot{it.Register, seq.Epoch{Round: it.Round, Session: req.Session}, 0})
		}
	case *pb.StepRequest:
		req, err := storewire.StepFromProto(wire)
		if err != nil {
			return nil
		}
		for _, it := range req.Items {
			out = append(out, ballot{it.Register, seq.Epoch{Round: it.Round, Session: req.Session}, it.Max})
		}
	}
	return out
}

// ofSections says whether a prepare is for sections, and not for one of the other registers.
func ofSections(body []byte) bool {
	wire := requestOf("prepare")
	if proto.Unmarshal(body, wire) != nil {
		return false
	}
	all := ballots(wire)
	return len(all) > 0 && all[0].register.Kind() == seq.KindSection
}

// describe is a message in a few words, for the trace.
func describe(body []byte, method string, request bool) string {
	if method == txnMethod {
		return describeTxn(body, request)
	}
	name := pointName(method)
	if request {
		switch name {
		case "prepare", "step":
			var b strings.Builder
			wire := requestOf(name)
			if proto.Unmarshal(body, wire) != nil {
				return ""
			}
			for _, it := range ballots(wire) {
				fmt.Fprintf(&b, " %s@%s", it.register, it.epoch)
				if name == "step" {
					fmt.Fprintf(&b, ">%d", it.max)
				}
			}
			return strings.TrimSpace(b.String())
		case "renew":
			var wire pb.RenewRequest
			if proto.Unmarshal(body, &wire) != nil {
				return ""
			}
			return fmt.Sprintf("session %s attached %d", seq.Session(wire.GetSession()), wire.GetAttached())
		}
		return text(requestOf(name), body)
	}
	switch name {
	case "read", "prepare", "step":
		var wire pb.ResultsReply
		if proto.Unmarshal(body, &wire) != nil {
			return ""
		}
		reply, err := storewire.ReplyFromProto(&wire)
		if err != nil {
			return err.Error()
		}
		return results(reply)
	case "renew":
		var wire pb.RenewReply
		if proto.Unmarshal(body, &wire) != nil {
			return ""
		}
		return fmt.Sprintf("reset %v lost %d refused %d", wire.GetReset_(), len(wire.GetLost()), len(wire.GetRefused()))
	}
	return text(replyOf(name), body)
}

func results(reply quorum.Reply) string {
	var b strings.Builder
	for i, r := range reply.Results {
		if i == 6 {
			fmt.Fprintf(&b, " and %d more", len(reply.Results)-i)
			break
		}
		fmt.Fprintf(&b, " %s(%s/%s max %d)", r.Verdict, r.Promised, r.Accepted, r.Max)
	}
	return strings.TrimSpace(b.String())
}

func requestOf(name string) proto.Message {
	switch name {
	case "prepare":
		return &pb.PrepareRequest{}
	case "step":
		return &pb.StepRequest{}
	case "next":
		return &pb.NextRequest{}
	case "raise":
		return &pb.RaiseRequest{}
	case "release":
		return &pb.ReleaseRequest{}
	case "take":
		return &pb.TakeRequest{}
	case "tag.take":
		return &pb.SegmentTakeRequest{}
	}
	return nil
}

func replyOf(name string) proto.Message {
	switch name {
	case "next":
		return &pb.NextReply{}
	case "raise":
		return &pb.RaiseReply{}
	case "take":
		return &pb.TakeReply{}
	case "tag.take":
		return &pb.SegmentTakeReply{}
	case "id.generate":
		return &pb.SnowflakeGenerateReply{}
	}
	return nil
}

func text(m proto.Message, body []byte) string {
	if m == nil || proto.Unmarshal(body, m) != nil {
		return ""
	}
	// The text form of protobuf has spaces at random, so that nobody parses it.
	return strings.Join(strings.Fields(fmt.Sprint(m)), " ")
}
