package processes

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// keyCalls takes numbers of string keys by the SDK and by HTTP in turn, and knows the last of each.
type keyCalls struct {
	t    *testing.T
	c    *client.Client
	web  string
	last map[string]seq.Seq
}

func (k *keyCalls) round() {
	k.t.Helper()
	for i := range 24 {
		key := fmt.Sprint("room:", i)
		got, err := k.c.Next(harness.Within(k.t), client.StringKey("", key))
		if err != nil {
			k.t.Fatal(err)
		}
		k.above(key, got)
		reply, err := http.Post("http://"+k.web+"/v1/next", "application/json", strings.NewReader(`{"key":"`+key+`"}`))
		if err != nil {
			k.t.Fatal(err)
		}
		var body struct{ First seq.Seq }
		err = json.NewDecoder(reply.Body).Decode(&body)
		if _ = reply.Body.Close(); err != nil || reply.StatusCode != http.StatusOK {
			k.t.Fatal(reply.Status, err)
		}
		k.above(key, body.First)
	}
}

func (k *keyCalls) above(key string, got seq.Seq) {
	k.t.Helper()
	if got <= k.last[key] {
		k.t.Fatalf("%s got %d after %d", key, got, k.last[key])
	}
	k.last[key] = got
}

// A cluster that is rehashed while it serves: allocators are restarted one after the other, one
// of them by a crash in the middle. No key goes back, and the secrets are in no log and no output.
func TestARehashWhileItServesRepeatsNothingAndShowsNoSecret(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Sections, cfg.Step = 16, 1000 })
	sdk, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc)})
	if err != nil {
		t.Fatal(err)
	}
	defer sdk.Close()
	calls := &keyCalls{t, sdk, c.HTTP(), map[string]seq.Seq{}}
	calls.round()
	var outputs bytes.Buffer
	seqctl := func(args ...string) string {
		t.Helper()
		got := run(t, "seqctl", append(args, "--addr", c.GRPC())...)
		got.Want(t, 0)
		outputs.WriteString(got.Stdout + got.Stderr)
		return got.Stdout
	}
	for _, hash := range []string{"sha256-64", "hmac-sha256-64"} {
		seqctl("space", "rehash", "user", "--key-hash", hash)
		calls.round()
		for i, p := range c.Processes(localcluster.RoleAlloc) {
			if i == 1 {
				if err := p.Kill(); err != nil {
					t.Fatal(err)
				}
				err = p.Start()
			} else {
				err = p.Restart(harness.Within(t))
			}
			if err != nil {
				t.Fatal(err)
			}
			calls.round()
			harness.Ready(t, c)
			calls.round()
		}
		harness.Until(t, "all that were restarted listed with "+hash, func() bool {
			list := seqctl("space", "list")
			return !strings.Contains(list, "restart") && strings.Count(list, hash) == 3
		})
	}
	seqctl("next", "--key", "room:1", "-o", "json")
	seqctl("route", "-o", "json")
	harness.Until(t, "the cluster is healthy", func() bool {
		got := run(t, "seqctl", "status", "-o", "json", "--addr", c.GRPC())
		outputs.WriteString(got.Stdout + got.Stderr)
		return got.Code == 0
	})
	seqctl("events", "-o", "json")
	if err := c.StopAll(harness.Within(t)); err != nil {
		t.Fatal(err)
	}
	secret := secretOf(t, c)
	if hidden := []byte(fmt.Sprintf("%x", secret[:])); bytes.Contains(outputs.Bytes(), hidden) {
		t.Errorf("a secret was printed:\n%s", outputs.String())
	} else {
		for _, p := range c.Processes(localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter) {
			if text, err := os.ReadFile(p.Log); err != nil || bytes.Contains(text, hidden) {
				t.Errorf("a secret is in %s, or %v", p.Log, err)
			}
		}
	}
	store := c.Role(localcluster.RoleStore)[0].Dir
	if got := run(t, "seqctl", "store", "inspect", store, "-o", "json"); strings.Contains(got.Stdout, fmt.Sprintf("%x", secret[:])) {
		t.Error("inspect prints the secret")
	}
}

// secretOf is the secret of the default space that a stopped store has.
func secretOf(t *testing.T, c *localcluster.Cluster) [32]byte {
	t.Helper()
	_, registers, err := disk.Inspect(c.Role(localcluster.RoleStore)[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	payload := registers[seq.KeysRegister].Payload
	if len(payload) < 8 || binary.BigEndian.Uint64(payload) < 3 {
		t.Fatalf("the document of key hashes has %d bytes, want its third version", len(payload))
	}
	var doc map[string]struct{ Secret seq.KeySecret }
	if err := json.Unmarshal(payload[8:], &doc); err != nil || doc[seq.DefaultSpace].Secret.IsZero() {
		t.Fatal("no secret at the stores: ", err)
	}
	return doc[seq.DefaultSpace].Secret
}
