package dev

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
)

// outside is a cluster of real processes.
type outside struct {
	*localcluster.Cluster
	news chan string
	gone chan struct{} // closed, after news, when no process is left

	mu   sync.Mutex // guards left
	left int        // processes that run; never rises again from 0
}

// startProcesses starts every daemon as a process. If one ends, dev reports that and leaves it alone, until
// SIGHUP starts it again. When all have ended, dev ends.
func startProcesses(o *options) (running, *localcluster.Layout, error) {
	roles := []localcluster.Role{localcluster.RoleStore, localcluster.RoleAlloc, localcluster.RoleRouter}
	o.Args = map[localcluster.Role][]string{}
	for _, role := range roles {
		o.Args[role] = []string{"--log-level", o.logLevel}
	}
	router := append(o.Args[localcluster.RoleRouter], "--leaf", "--http-hosts", strings.Join(o.httpHosts, ","))
	o.Args[localcluster.RoleRouter] = router
	cluster, err := localcluster.Start(o.Config)
	if err != nil {
		return nil, nil, err
	}
	c := &outside{Cluster: cluster, news: make(chan string, 8*len(cluster.Processes())), gone: make(chan struct{}), left: len(cluster.Processes())}
	for _, p := range cluster.Processes() {
		go c.watch(p, p.Done())
	}
	return c, cluster.Layout, nil
}

// watch waits for the end of one incarnation.
func (c *outside) watch(p *localcluster.Process, done <-chan struct{}) {
	<-done
	if p.Failed() {
		select {
		case c.news <- fmt.Sprintf("%s ended: %s", p.Name, p.Exit()):
		default: // the reader has gone
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.news)
		close(c.gone)
	}
}

// revive starts every process that has ended. Nothing, if none is left.
func (c *outside) revive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.Processes() {
		if c.left == 0 {
			return errNothingLeft
		}
		err := p.Start()
		switch {
		case errors.Is(err, localcluster.ErrRunning):
		case err != nil:
			return err
		default:
			c.left++
			go c.watch(p, p.Done())
		}
	}
	return nil
}

func (c *outside) ready(ctx context.Context) error { return c.WaitReady(ctx) }

func (c *outside) ended() <-chan string { return c.news }

func (c *outside) stop(ctx context.Context) error {
	err := c.StopAll(ctx)
	<-c.gone
	if errors.Is(err, context.Canceled) {
		return nil // asked for: everything was killed
	}
	return err
}

func (c *outside) processes() []process {
	var list []process
	for _, p := range c.Processes() {
		list = append(list, process{p.Role, p.Name, p.ServingPid(), p.Addr, p.Zone, p.Set})
	}
	return list
}
