package ctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestARequestIDGetsItsNumbersAgainAndLookupShowsThem(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "orders", Sections: 8, Mode: seq.Exact})
	long := strings.Repeat("x", seq.MaxRequestID+1)
	for _, row := range []struct {
		args, want string
		err        error
	}{
		{"next 42 --count 3 --space orders --request-id a -o json", `"first":1,"last":3,"count":3,"unordered":false,"replayed":false`, nil},
		{"next 42 --count 3 --space orders --request-id a -o json", `"first":1,"last":3,"count":3,"unordered":false,"replayed":true`, nil},
		{"next 42 --count 3 --space orders --request-id a", "true", nil},
		{"next 42 --space orders --request-id a", "it has got 3 from 1", seq.ErrIDConflict},
		{"next 42 --space orders --request-id z --first-sent 1700000000000", "", seq.ErrIDExpired},
		{"next 42 --request-id a", "kept by spaces of mode=exact only", seq.ErrIDNotKept},
		{"next 42 --space orders --request-id " + long, "of 65 bytes, expected 1 to 64", daemon.ErrUsage},
		{"next 42 --space orders --first-sent 5", "expected --request-id", daemon.ErrUsage},
		{"next --key k --space orders --request-id a -o json", `"replayed":false`, nil},
		{"lookup 42 a --space orders -o json", `"request_id":"a","found":true,"first":1,"last":3`, nil},
		{"lookup --key k a --space orders -o json", `"found":true,"first":1,"last":1`, nil},
		{"lookup 42 b --space orders -o json", `"found":false,"first":0,"last":0`, nil},
		{"lookup 42 b --space orders", "-", nil},
		{"lookup 42 b", "", seq.ErrIDNotKept},
		{"lookup 42 --space orders", "lookup UID|--key K REQUEST-ID", daemon.ErrUsage},
		{"lookup 42 " + long + " --space orders", "of 65 bytes", daemon.ErrUsage},
	} {
		out, err := call(t, append(strings.Fields(row.args), "--addr", cluster.Nodes[0].Addr())...)
		if !errors.Is(err, row.err) || row.err == nil && err != nil {
			t.Errorf("%s: got %v, want %v", row.args, err, row.err)
		}
		if err != nil {
			out += err.Error()
		}
		if got := strings.Join(strings.Fields(out), ""); !strings.Contains(got, strings.ReplaceAll(row.want, " ", "")) {
			t.Errorf("%s: got %s, want %s", row.args, out, row.want)
		}
	}
}
