package backup

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	mine   = Key(bytes.Repeat([]byte{7}, 32))
	others = Key(bytes.Repeat([]byte{8}, 32))
)

func signed(t *testing.T, k Key) []byte {
	t.Helper()
	m, states := sample(t)
	var file bytes.Buffer
	if err := k.Write(&file, m, states); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// forged is the file with one number changed by somebody who has all but the key: every
// checksum is right again.
func forged(t *testing.T, k Key) []byte {
	t.Helper()
	m, states := sample(t)
	for i := range states {
		if states[i].Register == seq.SectionRegister(3) {
			states[i].Max = 1
		}
	}
	was, now := signed(t, k), bytes.Buffer{}
	if err := others.Write(&now, m, states); err != nil {
		t.Fatal(err)
	}
	text := bytes.Replace(now.Bytes()[:now.Len()-2*sha256.Size], []byte(others.ID()), []byte(k.ID()), 1)
	sum := sha256.Sum256(text)
	text = append(text, sum[:]...)
	return append(text, was[len(was)-sha256.Size:]...)
}

// stripped is a signed file without its signature, as somebody would make it who knows
// the format.
func stripped(t *testing.T, k Key) []byte {
	t.Helper()
	m, states, _, err := Key(nil).Read(bytes.NewReader(signed(t, k)))
	if err != nil {
		t.Fatal(err)
	}
	return written(t, m, states)
}

func TestASignatureTellsWhoMadeTheFile(t *testing.T) {
	for name, one := range map[string]struct {
		file    []byte
		key     Key
		want    Signature
		refused string // the refusal of a restore; empty if it succeeds
	}{
		"its own key":             {signed(t, mine), mine, Held, ""},
		"no key given":            {signed(t, mine), nil, NoKey, ""},
		"another key":             {signed(t, mine), others, OtherKey, mine.ID()},
		"changed":                 {forged(t, mine), mine, Broken, "changed"},
		"changed, no key given":   {forged(t, mine), nil, NoKey, ""},
		"never signed":            {signed(t, nil), mine, Unsigned, "not signed"},
		"never signed, no key":    {signed(t, nil), nil, Unsigned, ""},
		"the signature taken off": {stripped(t, mine), mine, Unsigned, "not signed"},
	} {
		m, states, sig, err := one.key.Read(bytes.NewReader(one.file))
		if err != nil || sig != one.want || len(states) != m.Registers {
			t.Errorf("%s: got %q with %d registers, %v, want %q", name, sig, len(states), err, one.want)
			continue
		}
		err = one.key.Check(m, sig)
		if one.refused == "" && err != nil || one.refused != "" && (!errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), one.refused)) {
			t.Errorf("%s: a restore gets %v, want %q", name, err, one.refused)
		}
	}
}

func TestASignedFileThatWasCutOrChangedNeverHolds(t *testing.T) {
	whole := signed(t, mine)
	for n := range whole {
		if _, _, _, err := mine.Read(bytes.NewReader(whole[:n])); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: got %v, want ErrDamaged", n, len(whole), err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x10
		if _, _, sig, err := mine.Read(bytes.NewReader(changed)); !errors.Is(err, ErrDamaged) && sig != Broken {
			t.Fatalf("byte %d changed: got %q, %v", n, sig, err)
		}
	}
	if _, _, _, err := mine.Read(bytes.NewReader(append(whole, 1))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte more: got %v, want ErrDamaged", err)
	}
}

func TestTheSignatureIsTheHMACOfEverythingBeforeIt(t *testing.T) {
	whole := signed(t, mine)
	end := len(whole) - sha256.Size
	mac := hmac.New(sha256.New, mine)
	mac.Write(whole[:end])
	if !bytes.Equal(mac.Sum(nil), whole[end:]) {
		t.Error("it is not what openssl dgst -hmac says")
	}
	if got, want := signed(t, nil), written(t, first(sample(t)), second(sample(t))); !bytes.Equal(got, want) {
		t.Error("without a key the file differs from one of before")
	}
}

func first(m Manifest, _ []quorum.RegisterState) Manifest { return m }

func second(_ Manifest, states []quorum.RegisterState) []quorum.RegisterState { return states }

func TestAKeyPrintsAsNothingOfItself(t *testing.T) {
	for _, verb := range []string{"%v", "%s", "%x", "%#v", "%q", "%d"} {
		if got := fmt.Sprintf(verb, mine); got != "<key>" {
			t.Errorf("%s: %s", verb, got)
		}
	}
	if text, err := json.Marshal(mine); err != nil || !bytes.Contains(text, []byte("key")) {
		t.Errorf("in JSON: %s, %v", text, err)
	}
}

// A length of 4 GiB in a file of some bytes takes no 4 GiB.
func TestMemoryGoesByWhatIsThereAndNotByWhatALengthSays(t *testing.T) {
	m, states := sample(t)
	body := written(t, m, states[:1])
	body = body[:len(body)-sha256.Size]
	at := len(body) - len(encode(states[0])) + 2
	copy(body[at:], []byte{0xff, 0xff, 0xff, 0xff})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := Read(bytes.NewReader(body)); !errors.Is(err, ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("it took %d bytes", took)
	}
}
