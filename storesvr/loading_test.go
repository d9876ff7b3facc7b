package storesvr

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/storesvr/journal"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

func TestAStoreThatLoadsSaysHowFarItIs(t *testing.T) {
	var log textlog.Log
	end := tellLoading(slog.New(slog.NewTextHandler(&log, nil)), &journal.Progress{}, time.Millisecond)
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), "journal_percent=0"); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no line: %s", log.String())
		}
	}
	end()
	said := log.String()
	if <-time.After(20 * time.Millisecond); log.String() != said {
		t.Error("it goes on after the end")
	}
}

func TestTheProgressOfALoadEndsWithTheWholeJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	if err := Init(InitConfig{DataDir: dir, ClusterID: "c1", Name: "a", MemberNames: []string{"a"},
		Spaces: []seq.Space{{Name: "order", Sections: 1, Mode: seq.Exact}}}); err != nil {
		t.Fatal(err)
	}
	loaded := &journal.Progress{}
	if loaded.Share() != 0 {
		t.Errorf("before: got %v", loaded.Share())
	}
	db, _, _, err := disk.Open(dir, "", loaded)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if loaded.Share() != 1 {
		t.Errorf("after: got %v", loaded.Share())
	}
}
