package console

import "time"

// ShortenStreams has streams end sooner. It is for before the first request.
func ShortenStreams(c *Console, life time.Duration) { c.streamLife = life }
