package load

import (
	"context"
	"fmt"
	"time"
)

// Limits of a Config.
const (
	MaxCallers  = 65_536
	MaxUIDs     = 1 << 32
	MaxDuration = 24 * time.Hour
	MaxSample   = 1024
)

// Call makes one call of the caller, 0 to Config.Callers-1, and tells how many numbers
// it got. Each caller's calls follow each other; calls of different callers overlap.
// It must return soon after ctx ends.
type Call func(ctx context.Context, caller int) (numbers int, err error)

// Config is a run.
type Config struct {
	Callers  int           // 1 to MaxCallers
	Warmup   time.Duration // before the measured time, at least 0
	Duration time.Duration // measured, more than 0, at most MaxDuration
	// Rate is the number of numbers that all callers together ask for in a second, PerCall at a time. Zero
	// means as many as possible.
	Rate    float64
	PerCall int // numbers of one call, at least 1; only Rate looks at it
	// Sample is the number of calls of a caller for each call whose time is taken, if there is no Rate.
	// With zero or one the time of every call is taken. Every call is counted in any case.
	Sample int
	// Timeout bounds one call. Zero means that only the end of the run's context bounds it.
	Timeout time.Duration
	// Code names the kind of an error for Result.Errors. Nil: its text.
	Code func(error) string
}

// Validate names the first field that cannot work, as ErrConfig.
func (c Config) Validate() error {
	switch {
	case c.Callers < 1 || c.Callers > MaxCallers:
		return fmt.Errorf("%w: %d callers, expected 1 to %d", ErrConfig, c.Callers, MaxCallers)
	case c.Duration <= 0 || c.Duration > MaxDuration:
		return fmt.Errorf("%w: duration %v, expected more than 0 and at most %v", ErrConfig, c.Duration, MaxDuration)
	case c.Warmup < 0 || c.Warmup > MaxDuration:
		return fmt.Errorf("%w: warm-up %v, expected 0 to %v", ErrConfig, c.Warmup, MaxDuration)
	case !(c.Rate >= 0 && c.Rate <= 1e12):
		return fmt.Errorf("%w: rate %v numbers a second, expected 0 (as many as there can be) to 1e12", ErrConfig, c.Rate)
	case c.PerCall < 1:
		return fmt.Errorf("%w: %d numbers a call, expected at least 1", ErrConfig, c.PerCall)
	case c.Sample < 0 || c.Sample > MaxSample:
		return fmt.Errorf("%w: the time of one call in %d, expected 0 to %d", ErrConfig, c.Sample, MaxSample)
	case c.Timeout < 0:
		return fmt.Errorf("%w: timeout %v, expected at least 0", ErrConfig, c.Timeout)
	}
	return nil
}
