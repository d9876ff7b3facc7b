package ctl

import (
	"context"
	"sync"
)

// underWay is how many chunks of a file are worked on at once.
const underWay = 4

// inOrder works on what next gives, some at once, and hands what came of it to done in order.
// It ends with the first error of any of them, and work has ended then. ok is false behind
// the last one.
func inOrder[In, Out any](ctx context.Context, next func() (in In, ok bool, err error), work func(context.Context, In) (Out, error), done func(In, Out) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	type result struct {
		in  In
		out Out
		err error
	}
	var open []chan result
	settle := func() error {
		r := <-open[0]
		open = open[1:]
		if r.err != nil {
			return r.err
		}
		return done(r.in, r.out)
	}
	var failed error
	for more := true; more && failed == nil; {
		if len(open) == underWay {
			if err := settle(); err != nil {
				return err
			}
		}
		var in In
		if in, more, failed = next(); !more {
			break
		}
		one := make(chan result, 1)
		open = append(open, one)
		all.Go(func() {
			out, err := work(ctx, in)
			one <- result{in, out, err}
		})
	}
	for len(open) > 0 {
		if err := settle(); err != nil {
			return err
		}
	}
	return failed
}
