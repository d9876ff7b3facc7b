package dev

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/localcluster"
)

// outside is a cluster of real processes.
type outside struct {
	*localcluster.Cluster
	news     chan string
	watchers sync.WaitGroup
}

// startProcesses starts every daemon as a process. One that ends is told of and left
// alone, since whoever ended it may want to start it; when all have ended, dev ends.
func startProcesses(o *options) (running, *localcluster.Layout, error) {
	roles := []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter}
	o.Args = map[localcluster.Role][]string{}
	for _, role := range roles {
		o.Args[role] = []string{"--log-level", o.logLevel}
	}
	cluster, err := localcluster.Start(o.Config)
	if err != nil {
		return nil, nil, err
	}
	c := &outside{Cluster: cluster, news: make(chan string, len(cluster.Nodes))}
	for _, p := range cluster.Processes() {
		c.watchers.Go(func() {
			<-p.Done()
			if p.Failed() {
				c.news <- fmt.Sprintf("%s ended: %s", p.Name, p.Exit())
			}
		})
	}
	go func() {
		c.watchers.Wait()
		close(c.news)
	}()
	return c, cluster.Layout, nil
}

func (c *outside) ready(ctx context.Context) error { return c.WaitReady(ctx) }

func (c *outside) ended() <-chan string { return c.news }

func (c *outside) stop(ctx context.Context) error {
	err := c.StopAll(ctx)
	c.watchers.Wait()
	if errors.Is(err, context.Canceled) {
		return nil // asked for: everything was killed
	}
	return err
}

func (c *outside) processes() []process {
	var list []process
	for _, p := range c.Processes() {
		list = append(list, process{p.Role, p.Name, p.ServingPid(), p.Addr})
	}
	return list
}
