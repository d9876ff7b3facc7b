package seq

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SpaceForm is what ParseSpace takes.
const SpaceForm = "NAME[:sections=N][,step=N][,max-step=N][,max-jump=N][,mode=M][,window=D][,tickets=D][,key-hash=H]"

// ParseSpace reads NAME[:KEY=VALUE[,KEY=VALUE...]], as operators write a space. Settings that the text
// lacks are zero; NewMapping fills them in and checks the space. ParseSpace returns ErrBadMapping.
func ParseSpace(text string) (Space, error) {
	name, settings, _ := strings.Cut(text, ":")
	if name == "" {
		return Space{}, badText("no name")
	}
	space := Space{Name: name}
	if settings == "" {
		return space, nil
	}
	for setting := range strings.SplitSeq(settings, ",") {
		key, value, found := strings.Cut(setting, "=")
		if !found || value == "" {
			return Space{}, badText("%q is no setting", setting)
		}
		if err := space.set(key, value); err != nil {
			return Space{}, err
		}
	}
	return space, nil
}

func badText(format string, args ...any) error {
	return fmt.Errorf("%w: %s: expected %s", ErrBadMapping, fmt.Sprintf(format, args...), SpaceForm)
}

func (s *Space) set(key, value string) error {
	number := func(bits int, to func(uint64)) error {
		n, err := strconv.ParseUint(value, 10, bits)
		if err != nil || value[0] == '0' {
			return badText("%s is %q, no number above 0 without leading zeros", key, value)
		}
		to(n)
		return nil
	}
	duration := func(like string, to *time.Duration) error {
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return badText("%s is %q, no duration above 0 such as %s", key, value, like)
		}
		*to = d
		return nil
	}
	switch key {
	case "sections":
		return number(32, func(n uint64) { s.Sections = uint32(n) })
	case "step":
		return number(64, func(n uint64) { s.Step = n })
	case "max-step":
		return number(64, func(n uint64) { s.MaxStep = n })
	case "max-jump":
		return number(64, func(n uint64) { s.MaxJump = n })
	case "mode":
		s.Mode = Mode(value)
	case "key-hash":
		s.KeyHash = KeyHash(value)
	case "window":
		return duration("10m", &s.Window)
	case "tickets":
		return duration("10s", &s.Tickets)
	default:
		return badText("%q is no setting", key+"="+value)
	}
	return nil
}
