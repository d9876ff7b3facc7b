package client

// Stats is what a Client did so far, for the metrics of its process; it depends on no
// library of metrics: package clientmetrics shows it to Prometheus.
type Stats struct {
	Retries      uint64 // failed attempts that were made again, one for each key of a batch
	Pauses       uint64 // times that a call had no server left to ask and waited for a moment
	RouteVersion uint64 // of the route table in use; zero before the first

	// Fallback is zero without Config.Fallback. With several namespaces it holds the sums, and the earliest
	// end of a window.
	Fallback FallbackStats
}

// Stats may be called at any time, also after Close.
func (c *Client) Stats() Stats {
	s := Stats{Fallback: c.fallbacks.stats()}
	s.Retries, s.Pauses = c.calls.Counts()
	if routes := c.calls.Table().Routes(); routes != nil {
		s.RouteVersion = routes.Version
	}
	return s
}
