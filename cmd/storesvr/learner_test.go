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

func TestAStoreThatLostItsDiskRejoinsAsALearner(t *testing.T) {
	names := []string{"a", "b", "c"}
	var addrs []string
	for _, name := range names[:2] {
		addrs = append(addrs, serving(t, storesvr.InitConfig{DataDir: filepath.Join(t.TempDir(), name), ClusterID: "c1", Name: name, MemberNames: names,
			Spaces: []seq.Space{{Name: "user", Sections: 8}}}, quorum.Floors{}))
	}
	again := func(dir string, more ...string) (disk.Meta, string) {
		t.Helper()
		var said strings.Builder
		args := append([]string{"--rejoin", "--if-missing", "--join", strings.Join(addrs, ",") + ",127.0.0.1:1", "--cluster", "c1", "--name", "c", "--members", "a,b,c", "--sections", "8", "--data-dir", dir}, more...)
		if err := runInit(t.Context(), args, &said); err != nil {
			t.Fatal(err)
		}
		meta, _, err := disk.Inspect(dir)
		if err != nil {
			t.Fatal(err)
		}
		return meta, said.String()
	}
	first := filepath.Join(t.TempDir(), "first")
	if meta, said := again(first); meta.Learner || meta.N != 3 || !strings.Contains(said, "a new store of cluster c1") {
		t.Errorf("before the stores know each other: %+v, %s; want a member", meta, said)
	}
	cfg := storesvr.DefaultConfig()
	cfg.DataDir, cfg.Listen, cfg.NearFull = first, "127.0.0.1:0", 0
	s, err := storesvr.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	cluster, err := storeclient.Connect(t.Context(), append(addrs[:2:2], s.Addr())) // which binds them
	if err != nil {
		t.Fatal(err)
	}
	_ = cluster.Close()
	s.Close()
	<-ran
	if meta, said := again(first); meta.Learner || !strings.Contains(said, "left as it is") {
		t.Errorf("a disk that is there: %+v, %s; want it left", meta, said)
	}
	if meta, said := again(filepath.Join(t.TempDir(), "second")); !meta.Learner || meta.N != 0 || !strings.Contains(said, "a learner") {
		t.Errorf("after the loss of the disk: %+v, %s; want a learner", meta, said)
	}
	for _, args := range [][]string{{"--rejoin"}, {"--rejoin", "--learner", "--join", addrs[0]}} {
		if err := runInit(t.Context(), append(args, "--name", "c", "--data-dir", t.TempDir()), io.Discard); !errors.Is(err, storesvr.ErrConfig) {
			t.Errorf("%v: got %v, want %v", args, err, storesvr.ErrConfig)
		}
	}
}
