//go:build !linux

package line

import (
	"context"
	"net"
)

// loop exists on Linux only. On other systems each connection has a goroutine.
type loop struct{}

// How a loop leaves.
const (
	leaving = iota
	cut
)

func newLoop(context.Context, *Server) (*loop, error) { return nil, nil }
func (*loop) add(net.Conn, *Conn) bool                { return false }
func (*loop) run()                                    {}
func (*loop) stop(int32)                              {}
