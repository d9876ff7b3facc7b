package daemon

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/config"
)

// followHangups reloads the settings at each SIGHUP until the result is called.
func (c *Common) followHangups(ctx context.Context) (stop func()) {
	signals := c.hup
	if signals == nil {
		notified := make(chan os.Signal, 1)
		signal.Notify(notified, syscall.SIGHUP)
		signals = notified
		defer func() {
			inner := stop
			stop = func() { signal.Stop(notified); inner() }
		}()
	}
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

// Reload reads all sources again. What may change while the daemon runs is changed: the
// log level, the gossip keys, and what is in Live. Every other difference is logged as waiting for a
// restart. If the sources are not sound, nothing is changed and the log says why.
func (c *Common) Reload() {
	if c.Reread == nil {
		c.Logger.Warn("settings are not reloaded: this daemon was not started from any")
		return
	}
	fresh, err := c.Reread()
	if err != nil {
		c.Logger.Error("settings not reloaded, nothing is changed", "error", err)
		return
	}
	c.reloadKeys(fresh)
	changed := 0
	c.fs.VisitAll(func(old *pflag.Flag) {
		now := fresh.fs.Lookup(old.Name)
		if now == nil || now.Value.String() == old.Value.String() {
			return
		}
		changed++
		c.take(old, now)
	})
	c.Logger.Info("settings reloaded", "different", changed)
}

// take brings one setting up to date, if that can be done.
func (c *Common) take(old, now *pflag.Flag) {
	log := c.Logger.With("setting", old.Name, "from", config.Text(old), "to", config.Text(now))
	text := now.Value.String()
	apply := c.Live[old.Name]
	if old.Name == "log-level" {
		apply = func(text string) error { return c.level.UnmarshalText([]byte(text)) }
	}
	if old.Name == keysFlag && c.GossipKeys != nil && text != "" {
		apply = func(string) error { return nil } // reloadKeys has done it
	}
	if apply == nil {
		log.Warn("setting needs a restart")
		return
	}
	err := apply(text)
	if err == nil {
		err = c.fs.Set(old.Name, text)
	}
	if err != nil {
		log.Error("setting not changed", "error", err)
		return
	}
	log.Info("setting changed")
}
