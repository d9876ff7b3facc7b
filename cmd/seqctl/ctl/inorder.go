package ctl

import (
	"context"
	"sync"
)

// underWay is the number of chunks of a file that are in work at once.
const underWay = 4

// inOrder calls work for the values of next, several at once, and passes the results to done in order. It
// ends with the first error, after all calls of work have ended. After the last value, next returns false.
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
