package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

func TestALearnerIsMadeWithTheHighestFloorsThatTheStoresTell(t *testing.T) {
	floors := []quorum.Floors{{Tag: 77, Worker: 5000, Section: 88}, {Tag: 77, Worker: 9000, Section: 88}}
	names := []string{"a", "b"}
	var addrs []string
	for i, name := range names {
		dir := filepath.Join(t.TempDir(), name)
		id, err := storesvr.NewIdentity(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names,
			Spaces: []seq.Space{{Name: "user", Sections: 8}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := disk.Create(dir, id, disk.Filling{Floors: disk.Floors{Floors: floors[i]}}); err != nil {
			t.Fatal(err)
		}
		cfg := storesvr.DefaultConfig()
		cfg.DataDir, cfg.Listen, cfg.NearFull = dir, "127.0.0.1:0", 0
		s, err := storesvr.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error, 1)
		go func() { ran <- s.Run(context.Background()) }()
		t.Cleanup(func() {
			s.Close()
			<-ran
		})
		addrs = append(addrs, s.Addr())
	}
	cluster, err := storeclient.Connect(t.Context(), addrs) // which binds them
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Close(); err != nil {
		t.Fatal(err)
	}
	for _, join := range []string{addrs[0] + "," + addrs[1], addrs[1] + "," + addrs[0], addrs[1] + ",127.0.0.1:1"} {
		dir := filepath.Join(t.TempDir(), "n")
		if err := runInit(t.Context(), []string{"--learner", "--join", join, "--name", "n", "--data-dir", dir}, io.Discard); err != nil {
			t.Fatal(err)
		}
		if meta, _, err := disk.Inspect(dir); err != nil || meta.Floors.Floors != floors[1] || !meta.Learner {
			t.Errorf("joined %s: floors %+v, %v", join, meta.Floors, err)
		}
	}
}
