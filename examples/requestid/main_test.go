package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client/requestid"
)

func TestBothServersLogOneRequestUnderOneID(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("printed\n%s", out.String())
	}
	var ids []string
	for _, line := range lines[:2] {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		id, _ := record[requestid.LogKey].(string)
		ids = append(ids, id)
	}
	if ids[0] == "" || ids[0] != ids[1] || !strings.HasPrefix(lines[2], "request "+ids[0]+" came at 20") {
		t.Errorf("printed\n%s", out.String())
	}
}
