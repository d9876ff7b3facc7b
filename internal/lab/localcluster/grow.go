package localcluster

import (
	"fmt"
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
