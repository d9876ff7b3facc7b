package daemon

import (
	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/membership"
)

// keysFlag is the name of the flag whose file is read again at each reload, whether or
// not its path changed.
const keysFlag = "gossip-keys-file"

func (c *Common) keysFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.GossipKeysFile, keysFlag, "", "`file` with the keys of the membership's gossip, one a line in base64 (seqctl gossip-key), the first encrypts; read again at SIGHUP; empty: plaintext")
}

// openKeys reads the file. ErrUsage.
func (c *Common) openKeys() (err error) {
	c.GossipKeys, err = membership.LoadKeys(c.GossipKeysFile)
	return Usage(err)
}

// reloadKeys goes over to the keys that a fresh Common has read. To begin or to end with
// keys needs a restart: the setting's own line in the log says so.
func (c *Common) reloadKeys(fresh *Common) {
	if c.GossipKeys == nil || fresh.GossipKeys == nil {
		return
	}
	before := c.GossipKeys.Names()
	if c.GossipKeys.Replace(fresh.GossipKeys) {
		c.Logger.Info("gossip keys changed, the first encrypts", "file", fresh.GossipKeysFile, "from", before, "to", c.GossipKeys.Names())
	}
}
