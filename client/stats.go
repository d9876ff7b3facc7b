package client

import "sync/atomic"

// Stats is what a Client did so far, for the metrics of its process; it depends on no
// library of metrics: package clientmetrics shows it to Prometheus. For the fallback see FallbackStats.
type Stats struct {
	Retries      uint64 // failed attempts that were made again, one for each key of a batch
	Pauses       uint64 // times that a call had no server left to ask and waited for a moment
	RouteVersion uint64 // of the route table in use; 0: none yet
	FallbackIDs  uint64 // snowflake IDs made here while the service was away; marked IDs.Fallback
}

// counts are the Client's own, none of them on the path of a call that succeeds at once.
type counts struct{ retries, pauses atomic.Uint64 }

// Stats may be called at any time, also after Close.
func (c *Client) Stats() Stats {
	s := Stats{Retries: c.counts.retries.Load(), Pauses: c.counts.pauses.Load(), FallbackIDs: c.FallbackStats().IDs}
	if routes := c.Routes(); routes != nil {
		s.RouteVersion = routes.Version
	}
	return s
}
