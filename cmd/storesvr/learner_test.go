package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

func TestALearnerIsNotMadeOfTwoClustersOrEras(t *testing.T) {
	of := func(cluster string, era seq.Era, uuid string) quorum.Identity {
		return quorum.Identity{Ref: quorum.Ref{Cluster: cluster, Era: era}, Incarnation: seq.NewIncarnation(seq.ClusterID{}, cluster, era, []string{uuid})}
	}
	one := of("c1", 1, "a")
	before := of("c1", 1, "a")
	before.Incarnation = seq.Incarnation{}
	for name, row := range map[string]struct {
		other quorum.Identity
		want  error
	}{
		"itself":                        {one, nil},
		"a build of the version before": {before, nil},
		"another name":                  {of("c2", 1, "a"), seq.ErrForeignCluster},
		"another cluster of the name":   {of("c1", 1, "b"), seq.ErrForeignCluster},
		"another era":                   {of("c1", 2, "a"), seq.ErrStaleEra},
	} {
		if err := sameLife(one, row.other); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%s: %v, expected %v", name, err, row.want)
		}
	}
	var addrs []string
	for _, cluster := range []string{"c1", "c2"} {
		addr := serving(t, storesvr.InitConfig{DataDir: filepath.Join(t.TempDir(), cluster), ClusterID: cluster, Name: "a", MemberNames: []string{"a"}}, quorum.Floors{})
		c, err := storeclient.Connect(t.Context(), []string{addr})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		addrs = append(addrs, addr)
	}
	err := runInit(t.Context(), []string{"--learner", "--join", strings.Join(addrs, ","), "--name", "n", "--data-dir", filepath.Join(t.TempDir(), "n")}, io.Discard)
	if !errors.Is(err, seq.ErrForeignCluster) || !strings.Contains(err.Error(), addrs[0]) || !strings.Contains(err.Error(), addrs[1]) {
		t.Errorf("of two clusters: %v, expected %v with both addresses", err, seq.ErrForeignCluster)
	}
}

// serving runs a new store and returns its address.
func serving(t *testing.T, init storesvr.InitConfig, floors quorum.Floors) string {
	t.Helper()
	id, err := storesvr.NewIdentity(init)
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Create(init.DataDir, id, disk.Filling{Floors: disk.Floors{Floors: floors}}); err != nil {
		t.Fatal(err)
	}
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull = init.DataDir, "127.0.0.1:0", 0
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
	return s.Addr()
}

func TestALearnerIsMadeWithTheHighestFloorsThatTheStoresTell(t *testing.T) {
	floors := []quorum.Floors{{Tag: 77, Worker: 5000, Section: 88}, {Tag: 77, Worker: 9000, Section: 88}}
	names := []string{"a", "b"}
	var addrs []string
	for i, name := range names {
		addrs = append(addrs, serving(t, storesvr.InitConfig{DataDir: filepath.Join(t.TempDir(), name), ClusterID: "c1", Name: name, MemberNames: names,
			Spaces: []seq.Space{{Name: "user", Sections: 8}}}, floors[i]))
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
