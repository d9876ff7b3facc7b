package client

import "github.com/seqsvr/seqsvr/seq"

// Routes is the route table that the Client goes by; nil before the first. Of several Sets it
// is the root's, and nil as long as that is not known. It must not be changed.
func (c *Client) Routes() *seq.RouteTable {
	if v := c.calls.Table().View(); v != nil {
		return v.Root().Routes
	}
	return nil
}

// Mapping is the cluster's mapping, of several Sets that of all; ok is false before the first
// route table.
func (c *Client) Mapping() (m seq.Mapping, ok bool) {
	if v := c.calls.Table().View(); v != nil {
		return v.Mapping, true
	}
	return seq.Mapping{}, false
}

// ClusterID is the cluster's id, of several Sets the root's; "" before the first route table if
// Config had none.
func (c *Client) ClusterID() string {
	switch v := c.calls.Table().View(); {
	case v == nil:
		return c.cfg.ClusterID
	case len(v.Sets.Sets) > 0:
		return v.Sets.Sets[0].Cluster
	default:
		return v.Root().Of.ID()
	}
}

// Incarnation returns the life of the cluster that the Client holds to, of several Sets the life of
// the root. It is not known before the first route table, or if no server told it.
func (c *Client) Incarnation() seq.Incarnation {
	if v := c.calls.Table().View(); v != nil {
		return v.Root().Life
	}
	return seq.Incarnation{}
}
