package console

import "time"

// ShortenStreams makes streams end sooner. Call it before the first request.
func ShortenStreams(c *Console, life time.Duration) { c.streamLife = life }
