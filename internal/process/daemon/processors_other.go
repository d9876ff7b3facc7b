//go:build !unix

package daemon

import (
	"context"
	"log/slog"
)

// FollowProcessors does nothing here.
func FollowProcessors(context.Context, *slog.Logger) {}
