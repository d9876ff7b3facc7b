package globalid

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// ParseNamespace reads a namespace as a config file has it, words with blanks between
// them in any order:
//
//	name=orders alias=7 layout=leaf overflow=borrow rollback=wait:10ms
//
// name and layout are needed; the layout is a preset or a text without blanks. Unknown
// and repeated words are refused: seq.ErrBadArgument, seq.ErrBadLayout.
func ParseNamespace(text string) (Namespace, error) {
	e := edited{}
	fields := map[string]*string{"name": &e.name, "layout": &e.layout, "overflow": &e.overflow, "rollback": &e.rollback, "alias": new(string)}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		into, known := fields[key]
		switch {
		case !known:
			return Namespace{}, fmt.Errorf("%w: namespace %.200q: %q, expected name=, alias=, layout=, overflow= or rollback=", seq.ErrBadArgument, text, key)
		case value == "":
			return Namespace{}, fmt.Errorf("%w: namespace %.200q: %s has no value", seq.ErrBadArgument, text, key)
		case *into != "":
			return Namespace{}, fmt.Errorf("%w: namespace %.200q: %s twice", seq.ErrBadArgument, text, key)
		}
		*into = value
	}
	if e.name == "" || e.layout == "" {
		return Namespace{}, fmt.Errorf("%w: namespace %.200q: name= and layout= are needed", seq.ErrBadArgument, text)
	}
	if alias := *fields["alias"]; alias != "" {
		n, err := strconv.ParseUint(alias, 10, 32)
		if err != nil || n == 0 {
			return Namespace{}, fmt.Errorf("%w: namespace %.200q: alias %q, expected 1 to 4294967295", seq.ErrBadArgument, text, alias)
		}
		e.alias = uint32(n)
	}
	ns, err := e.over(Namespace{})
	if err == nil {
		err = ns.validate()
	}
	if err != nil {
		return Namespace{}, fmt.Errorf("namespace %.200q: %w", text, err)
	}
	return ns, nil
}

// declare records the configured namespaces that nobody has recorded yet. Those that
// somebody has stay as they are, retired ones too: a file that one node still has in an
// older version must not undo what another did. seq.ErrTimeExhausted: one is not recorded,
// and its layout has ended. seq.ErrUnsafeChange: one is recorded with a layout or an alias
// under which the same ID, or the same number, means something else.
func (s *Service) declare(ctx context.Context) error {
	if len(s.cfg.Namespaces) == 0 {
		return nil
	}
	var differ []Namespace // as they are recorded
	_, err := s.change(ctx, func(d directory) (directory, bool, error) {
		changed := false
		differ = differ[:0]
		for _, want := range s.cfg.Namespaces {
			have, recorded := d.find(want.Name)
			if !recorded {
				err := want.lasts(s.cfg.Wall())
				if err == nil {
					d, _, err = d.put(want, 0)
				}
				if err != nil {
					return d, false, fmt.Errorf("configured %w", err)
				}
				changed = true
				continue
			}
			if err := want.agrees(have); err != nil {
				return d, false, fmt.Errorf("configured %w", err)
			}
			if have.Layout != want.Layout || have.Alias != want.Alias || have.Retired != 0 {
				differ = append(differ, have)
			}
		}
		return d, changed, nil
	})
	if err != nil {
		return err
	}
	for _, have := range differ {
		if err := have.inUse(); err != nil {
			s.log.Warn("configured namespace stays retired; seqctl namespace retire --undo brings it back", "namespace", have.Name, "error", err)
			continue
		}
		s.log.Warn("namespace is recorded otherwise than it is configured, and stays so", "namespace", have.Name,
			"alias", have.Alias, "layout", have.Layout.String(), "version", have.Version)
	}
	return nil
}

// agrees says whether IDs and numbers mean the same in both, so that one of them may be
// an older or newer version of the other.
func (ns Namespace) agrees(have Namespace) error {
	if ns.Alias != 0 && have.Alias != 0 && ns.Alias != have.Alias {
		return fmt.Errorf("namespace %q: %w: it is recorded with alias %d, not %d", ns.Name, seq.ErrUnsafeChange, have.Alias, ns.Alias)
	}
	if err := ns.Layout.Follows(have.Layout); err != nil && have.Layout.Follows(ns.Layout) != nil {
		return reading.name(fmt.Errorf("namespace %q: %w", ns.Name, err))
	}
	return nil
}

// hopeless says that a configured namespace will not be recorded by trying again.
func hopeless(err error) bool {
	return errors.Is(err, seq.ErrUnsafeChange) || errors.Is(err, seq.ErrBadArgument) || errors.Is(err, seq.ErrTimeExhausted) || errors.Is(err, snowflake.ErrLayout)
}
