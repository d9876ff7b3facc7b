package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/pflag"
)

// earlyHangups has a SIGHUP that came before Hangups was called.
var earlyHangups = make(chan os.Signal, 1)

// Hangups returns the SIGHUPs from now on, and one that came since the start of Main. The
// result stop ends that.
func Hangups() (signals <-chan os.Signal, stop func()) {
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGHUP)
	select {
	case early := <-earlyHangups:
		select {
		case notified <- early:
		default: // another one is in it already
		}
	default:
	}
	return notified, func() { signal.Stop(notified) }
}

func (c *Common) hangups() (signals <-chan os.Signal, stop func()) {
	if c.hup != nil {
		return c.hup, func() {}
	}
	return Hangups()
}

// follow reloads the settings at each of the signals until the result is called.
func (c *Common) follow(ctx context.Context, signals <-chan os.Signal) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var task sync.WaitGroup
	task.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
				c.Reload()
			}
		}
	})
	return func() {
		cancel()
		task.Wait()
	}
}

// Reload reads all sources again. It changes the settings that may change while the daemon runs: the log
// level, the policy, the gossip keys, the share of traces, and the settings in Live. It logs every other
// difference as waiting for a restart. If a source is not valid, or a value is refused, Reload changes
// nothing and logs the reason.
func (c *Common) Reload() {
	c.Guard.Reload() // even if the settings are not valid: a revoked principal must not keep access
	if c.Hangup != nil {
		c.Hangup()
	}
	if c.Reread == nil {
		c.Logger.Warn("settings are not reloaded: this daemon was not started from any")
		return
	}
	fresh, err := c.Reread()
	if err != nil {
		c.Logger.Error("settings not reloaded, nothing is changed", "error", err)
		return
	}
	var live, fixed []difference
	c.fs.VisitAll(func(old *pflag.Flag) {
		now := fresh.fs.Lookup(old.Name)
		if now == nil || now.Value.String() == old.Value.String() {
			return
		}
		d := difference{name: old.Name, from: old.Value.String(), to: now.Value.String(), apply: c.live(old.Name, now.Value.String()),
			log: c.Logger.With("setting", old.Name, "from", old.Value.String(), "to", now.Value.String())}
		if d.apply == nil {
			fixed = append(fixed, d)
		} else {
			live = append(live, d)
		}
	})
	if err := applyAll(live); err != nil {
		c.Logger.Error("settings not reloaded, nothing is changed", "error", err)
		return
	}
	c.reloadKeys(fresh)
	for _, d := range live {
		_ = c.fs.Set(d.name, d.to) // it was read from such a flag
		d.log.Info("setting changed")
	}
	for _, d := range fixed {
		d.log.Warn("setting needs a restart")
	}
	c.Logger.Info("settings reloaded", "changed", len(live), "need_restart", len(fixed))
}

// difference is a setting whose sources say something new.
type difference struct {
	name, from, to string
	apply          func(text string) error // nil if the setting needs a restart
	log            *slog.Logger
}

// live returns a function that applies a new value of a setting while the daemon runs. It returns nil if
// the setting needs a restart.
func (c *Common) live(name, to string) func(text string) error {
	switch {
	case name == "log-level":
		return func(text string) error { return c.level.UnmarshalText([]byte(text)) }
	case name == keysFlag && c.GossipKeys != nil && to != "":
		return func(string) error { return nil } // reloadKeys takes the file
	case name == sampleFlag && c.exporter != nil:
		return c.setSample
	}
	return c.Live[name]
}

// applyAll takes all differences or, with an error, none.
func applyAll(all []difference) error {
	for i, d := range all {
		if err := d.apply(d.to); err != nil {
			err = fmt.Errorf("setting %s: %w", d.name, err)
			for _, done := range slices.Backward(all[:i]) {
				err = errors.Join(err, done.apply(done.from))
			}
			return err
		}
	}
	return nil
}

// LiveInts are entries of Common.Live for whole numbers, each a field of a configuration of
// which take takes a changed one.
func LiveInts[C any](now C, take func(next C) error, fields map[string]func(*C) *int) map[string]func(text string) error {
	set := map[string]func(*C, string) error{}
	for name, field := range fields {
		set[name] = func(next *C, text string) (err error) {
			*field(next), err = strconv.Atoi(text)
			return err
		}
	}
	return Live(now, take, set)
}

// Live is LiveInts for settings of any type: set puts the text into a configuration.
func Live[C any](now C, take func(next C) error, fields map[string]func(next *C, text string) error) map[string]func(text string) error {
	out := map[string]func(string) error{}
	for name, set := range fields {
		out[name] = func(text string) error {
			next := now
			if err := set(&next, text); err != nil {
				return err
			}
			if err := take(next); err != nil {
				return err
			}
			now = next
			return nil
		}
	}
	return out
}
