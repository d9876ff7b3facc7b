package localcluster

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// AddStore makes the disk of one more store as a learner, from what a running store of
// the cluster tells, and gives its process, which is not started. The next start of the
// directory does not know it. It must not run beside other methods. ErrConfig if all
// MaxStores are there, or the registers are in etcd.
func (c *Cluster) AddStore() (*Process, error) {
	if len(c.Role(RoleStore)) == 0 {
		return nil, fmt.Errorf("%w: a store beside registers in etcd", ErrConfig)
	}
	if len(c.spare) == 0 {
		return nil, fmt.Errorf("%w: more than %d stores", ErrConfig, MaxStores)
	}
	if c.Secured != nil {
		if err := c.Secured.certify(c.spare[0]); err != nil {
			return nil, fmt.Errorf("add %s: %w", c.spare[0].Name, err)
		}
	}
	p := c.make(c.spare[0])
	args := []string{"init", "--learner", "--join", strings.Join(c.Addrs(RoleStore), ","), "--cluster", c.ClusterID,
		"--data-dir", p.Dir, "--name", p.Name}
	if c.Secured != nil {
		f := c.Secured.node(p.Node)
		args = append(args, "--tls-cert", f.Cert, "--tls-key", f.Key, "--tls-ca", f.CA)
	}
	cmd := exec.Command(p.argv[0], args...)
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("add %s: %w: %w: %s", p.Name, ErrExited, err, strings.TrimSpace(string(out)))
	}
	c.spare = c.spare[1:]
	c.processes = append(c.processes, p)
	return p, nil
}

// CloneStore copies the disk of a store that does not run, and returns a process that serves the copy at
// another address of the store's host, under the store's name. The process is not started, and only KillAll
// and Close know it. CloneStore must not run beside other methods. ErrConfig if there is no such store, or
// no address is left.
func (c *Cluster) CloneStore(name string) (*Process, error) {
	store := c.Process(name)
	if store == nil || store.Role != RoleStore || len(c.spare) == 0 {
		return nil, fmt.Errorf("%w: clone %q: expected a store and a free address", ErrConfig, name)
	}
	if store.Running() {
		return nil, fmt.Errorf("clone %s: %w", name, ErrRunning)
	}
	n, at := store.Node, c.spare[len(c.spare)-1]
	n.Dir = at.Dir + "-clone"
	n.Addr, n.Gossip = moved(n.Addr, at.Addr), moved(n.Gossip, at.Gossip)
	if err := os.RemoveAll(n.Dir); err != nil {
		return nil, fmt.Errorf("clone %s: %w", name, err)
	}
	if err := os.CopyFS(n.Dir, os.DirFS(store.Dir)); err != nil {
		return nil, fmt.Errorf("clone %s: %w", name, err)
	}
	p := c.make(n)
	p.Log += ".clone"
	c.clones = append(c.clones, p)
	return p, nil
}

// moved returns the host of one address with the port of another.
func moved(addr, to string) string {
	host, _, _ := net.SplitHostPort(addr) // the layout has made both
	_, port, _ := net.SplitHostPort(to)
	return net.JoinHostPort(host, port)
}
