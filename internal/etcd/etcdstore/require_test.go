package etcdstore_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// value is a value of a key, as JSON that may be changed.
func (n *node) value(key string) (fields map[string]any) {
	n.Helper()
	a, err := n.kv.etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: key}}})
	if err != nil || len(a.Results[0].KVs) != 1 {
		n.Fatalf("%s: %+v, %v", key, a, err)
	}
	v := a.Results[0].KVs[0].Value
	if err := json.Unmarshal(v[:len(v)-4], &fields); err != nil {
		n.Fatal(err)
	}
	return fields
}

func (n *node) putValue(key string, fields map[string]any) {
	n.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		n.Fatal(err)
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	body = binary.LittleEndian.AppendUint32(body, crc32.Update(crc32.Checksum([]byte(key), table), table, body))
	if _, err := n.kv.etcd.Apply(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: key, Value: body}}}); err != nil {
		n.Fatal(err)
	}
}

const metaKey = rigPrefix + "/meta"

// A build of before stops at any write, and at its start, where the meta has a Poison.
func TestARequiredProtocolStopsBuildsThatDoNotKnowIt(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	b.renew(bob, 0)
	for range 2 {
		if err := a.Require(a.Context(), version.Sets); err != nil {
			t.Fatal(err)
		}
	}
	if text := b.value(metaKey)["Poison"]; text != "these keys need a build of protocol 3 or newer" {
		t.Errorf("a build of before reads the Poison %q", text)
	}
	a.want("a step of the process that raised it", a.step(alice, 1, section, 500), quorum.VerdictOK)
	b.want("a promise in another process", b.prepare(bob, 1, seq.SectionRegister(1)), quorum.VerdictOK)
	b.renew(bob, 0)
	for _, n := range []*node{a, b, newNode(t, a.kv.etcd)} {
		if got := n.Identity(); got.Required != version.Sets || !got.Voting {
			t.Errorf("it shows %d as required, voting %v: %s", got.Required, got.Voting, got.State)
		}
	}
	// etcd that is put back is found out as before.
	snapshot := a.kv.etcd.Save()
	a.want("step", a.step(alice, 1, section, 600), quorum.VerdictOK)
	a.kv.etcd.Restore(snapshot, 5)
	if _, err := a.tryStep(alice, 1, section, 700); !errors.Is(err, etcdstore.ErrRestored) {
		t.Errorf("after etcd was put back: %v", err)
	}
	if _, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: a.kv, Prefix: rigPrefix, Clock: a.clock}); !errors.Is(err, etcdstore.ErrRestored) {
		t.Errorf("a new process then: %v", err)
	}
}

func TestNothingIsRequiredOnEtcdWhileAnOlderSessionLives(t *testing.T) {
	a, b := rig(t)
	b.renew(bob, 0)
	key := rigPrefix + "/s/" + bob.String()
	before := b.value(key)
	if before["Protocol"] != float64(version.Protocol) {
		t.Errorf("a session says that it speaks %v", before["Protocol"])
	}
	delete(before, "Protocol")
	b.putValue(key, before)
	err := a.Require(a.Context(), version.Sets)
	if !errors.Is(err, seq.ErrProtocol) || !strings.Contains(err.Error(), bob.String()) {
		t.Errorf("got %v, want %v with the node", err, seq.ErrProtocol)
	}
	if got := a.value(metaKey); got["Required"] != nil || got["Poison"] != "" {
		t.Errorf("the meta has %v", got)
	}
}

func TestAnEtcdThatRequiresANewerBuildIsRefused(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	m := a.value(metaKey)
	m["Required"], m["Poison"] = version.Protocol+1, "these keys need a build of protocol 3 or newer"
	a.putValue(metaKey, m)
	if _, err := a.tryStep(alice, 1, section, 500); !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("a step: %v", err)
	}
	if _, err := a.tryRenew(alice, alice.String(), 1); !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("a renewal: %v", err)
	}
	if _, err := b.tryPrepare(bob, 1, seq.SectionRegister(1)); !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("a promise: %v", err)
	}
	if _, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: a.kv, Prefix: rigPrefix, Clock: a.clock}); !errors.Is(err, seq.ErrProtocol) {
		t.Errorf("a new process: %v", err)
	}
}
