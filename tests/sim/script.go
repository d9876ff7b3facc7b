package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
)

// command is one step of a scenario: a word, its arguments in order, and those with a
// name.
type command struct {
	line  int
	text  string
	verb  string
	args  []string
	named map[string]string
	want  string
}

// parseScript reads a scenario: a command, a line of four dashes, the output that is
// expected, an empty line, and so on. Lines that begin with # are for people.
func parseScript(text string) ([]command, error) {
	var out []command
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			i++
			continue
		}
		c := command{line: i + 1, text: line, named: map[string]string{}}
		for k, word := range strings.Fields(line) {
			name, value, ok := strings.Cut(word, "=")
			switch {
			case k == 0:
				c.verb = word
			case ok:
				c.named[name] = value
			default:
				c.args = append(c.args, word)
			}
		}
		if i++; i < len(lines) && strings.TrimSpace(lines[i]) == "----" {
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
				c.want += lines[i] + "\n"
			}
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("a scenario without a command")
	}
	return out, nil
}

// golden writes a scenario with the outputs that its commands had, in place of the ones
// that were expected.
func golden(text string, got []string) string {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	next := 0
	for i := 0; i < len(lines); {
		line := strings.TrimSpace(lines[i])
		b.WriteString(lines[i] + "\n")
		i++
		if line == "" || line[0] == '#' {
			continue
		}
		if i < len(lines) && strings.TrimSpace(lines[i]) == "----" {
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
			}
		}
		if next < len(got) && got[next] != "" {
			b.WriteString("----\n" + got[next])
		}
		next++
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// stage is a scenario being played.
type stage struct {
	w      *world
	actors map[string]*actor
	caller *caller
	named  bool // the namespace of IDs is there
	orders map[string]*order
}

// play runs the commands one after the other and gives the output of each.
func play(commands []command, dir string) ([]string, []Violation) {
	s := &stage{actors: map[string]*actor{}, orders: map[string]*order{}}
	var out []string
	for _, c := range commands {
		text, err := s.do(c, dir)
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		out = append(out, text)
	}
	if s.w == nil {
		return out, nil
	}
	w := s.w
	for _, a := range s.actors {
		a.close()
	}
	w.conclude()
	return out, w.result(nil).Violations
}

// do plays one command.
func (s *stage) do(c command, dir string) (string, error) {
	if c.verb == "cluster" {
		return "", s.cluster(c, dir)
	}
	if s.w == nil {
		return "", fmt.Errorf("line %d: no cluster yet", c.line)
	}
	switch c.verb {
	case "wait":
		d, err := time.ParseDuration(c.arg(0))
		if err == nil {
			s.w.sleep(d)
		}
		return "", err
	case "kill", "start", "leave", "pause", "wake":
		return "", s.lifecycle(c)
	case "fault":
		f, err := ParseFault("0s " + strings.TrimPrefix(c.text, "fault "))
		if err == nil {
			s.w.faults.arm([]Fault{f})
			s.w.sleep(time.Millisecond)
		}
		return "", err
	case "connect":
		return "", s.connect()
	case "fate":
		h := s.w.hosts.named(c.arg(0))
		h.disk.mu.Lock()
		defer h.disk.mu.Unlock()
		h.disk.fate = c.arg(1)
		return "", nil
	case "stores":
		return s.stores(c), nil
	case "lists":
		return s.lists(), nil
	case "care":
		return s.care(c)
	case "nodes":
		return s.nodes(), nil
	case "prepare", "step", "hold", "release", "lease":
		return s.act(c)
	case "next", "id", "serving":
		return s.ask(c)
	}
	return "", fmt.Errorf("line %d: no command %q", c.line, c.verb)
}

func (c command) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c command) number(name string, otherwise uint64) uint64 {
	if v, err := strconv.ParseUint(c.named[name], 10, 64); err == nil {
		return v
	}
	return otherwise
}

// cluster builds the stage: nothing in it is left to chance.
func (s *stage) cluster(c command, dir string) error {
	lease, err := time.ParseDuration(c.named["lease"])
	if err != nil {
		return fmt.Errorf("line %d: lease: %w", c.line, err)
	}
	o := Options{Seed: 1, Stores: int(c.number("stores", 3)), Allocs: int(c.number("allocs", 0)), Callers: 1, Lease: lease,
		Latency: 500 * time.Microsecond, Disk: time.Millisecond, still: true, sectionsWanted: uint32(c.number("sections", 1)),
		Care: c.named["operators"] == "yes", Fixed: c.named["workers"] == "fixed"}
	s.w = newWorld(o, dir)
	s.w.assemble()
	s.w.work.Go(s.w.loop)
	s.w.back.begin()
	up := strings.Split(c.named["up"], ",")
	for _, h := range s.w.hosts.of(allocHost) {
		if c.named["up"] == "" || slices.Contains(up, h.name) {
			s.w.procs.startAlloc(h)
		}
	}
	s.caller = &caller{w: s.w, h: s.w.hosts.of(callerHost)[0]}
	s.w.sleep(50 * time.Millisecond)
	if o.Allocs == 0 { // nobody tells the stores what their fellows remember: they wait
		s.w.sleep(1050 * time.Millisecond)
	}
	return nil
}

// connect finds the stores as a process does that starts: it also tells those that have
// restarted what their fellows remember of them.
func (s *stage) connect() error {
	ctx, cancel := context.WithTimeout(s.w.life, 3*time.Second)
	defer cancel()
	from := s.caller.h
	found, err := storeclient.Connect(ctx, s.w.addresses(), s.w.net.through(from, from.life))
	return errors.Join(err, found.Close())
}

func (s *stage) lifecycle(c command) error {
	w := s.w
	for _, name := range c.args {
		h := w.hosts.named(name)
		if h == nil {
			return fmt.Errorf("line %d: no host %q", c.line, name)
		}
		switch c.verb {
		case "kill":
			w.procs.kill(h, 0)
		case "start":
			w.procs.start(h)
		case "leave":
			w.procs.leaveAlloc(h)
		case "pause", "wake":
			w.mu.Lock()
			if c.verb == "pause" {
				h.pause(true)
			} else {
				h.resume()
			}
			w.mu.Unlock()
		}
	}
	w.sleep(50 * time.Millisecond)
	return nil
}

// patiently tries until it works or half a minute is over.
func (s *stage) patiently(ok func(ctx context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(s.w.life, 30*time.Second)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}
