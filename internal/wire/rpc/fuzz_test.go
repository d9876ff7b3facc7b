package rpc

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// FuzzProtocolVersions: a header is versions in order, or refused by name.
func FuzzProtocolVersions(f *testing.F) {
	for _, text := range []string{"2/1", "1/2", "", "1", "-1/1", "9999999999999999999/1", "1/1/1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseProtocol(text)
		switch {
		case err != nil && !errors.Is(err, seq.ErrProtocol):
			t.Fatalf("error of no name: %v", err)
		case err == nil && (p.oldest < 1 || p.own < p.oldest):
			t.Fatalf("%q was taken as %+v", text, p)
		}
	})
}

// FuzzMapping: a mapping that was taken is sound and travels on unchanged.
func FuzzMapping(f *testing.F) {
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 3}, seq.Space{Name: "room", Sections: 2, Mode: seq.Strict})
	if err != nil {
		f.Fatal(err)
	}
	data, err := proto.Marshal(MappingToProto(m))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var wire pb.Mapping
		if proto.Unmarshal(data, &wire) != nil {
			return
		}
		m, err := MappingFromProto(&wire)
		if err != nil {
			if !errors.Is(err, seq.ErrBadMapping) {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		if !proto.Equal(MappingToProto(m), &wire) && len(wire.ProtoReflect().GetUnknown()) == 0 && known(&wire) {
			t.Fatalf("%v travels on as %v", &wire, MappingToProto(m))
		}
	})
}

// known says that no space has a field that this build does not know.
func known(m *pb.Mapping) bool {
	for _, s := range m.GetSpaces() {
		if len(s.ProtoReflect().GetUnknown()) > 0 {
			return false
		}
	}
	return true
}

// FuzzKeyErrors: what a peer calls an error becomes one, with a text.
func FuzzKeyErrors(f *testing.F) {
	f.Add(uint32(1), "text", "addr", uint64(3))
	f.Add(uint32(1<<31), "", "", uint64(0))
	f.Fuzz(func(t *testing.T, code uint32, text, addr string, version uint64) {
		k := &pb.KeyError{Code: pb.ErrorCode(code), Message: text}
		err := FromKeyError(k)
		if err == nil || err.Error() == "" {
			t.Fatalf("%v became %v", k, err)
		}
		if again := FromKeyError(ToKeyError(0, err)); CodeOf(again) != CodeOf(err) {
			t.Fatalf("%v travels on as %v", err, again)
		}
	})
}
