package namespaces

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Parse reads a namespace as a config file has it, words with blanks between
// them in any order:
//
//	name=orders alias=7 layout=leaf overflow=borrow rollback=wait:10ms
//
// name and layout are needed; the layout is a preset or a text without blanks. Unknown
// and repeated words are refused: seq.ErrBadArgument, seq.ErrBadLayout.
func Parse(text string) (Namespace, error) {
	e := Edit{}
	fields := map[string]*string{"name": &e.Name, "layout": &e.Layout, "overflow": &e.Overflow, "rollback": &e.Rollback, "alias": new(string)}
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
	if e.Name == "" || e.Layout == "" {
		return Namespace{}, fmt.Errorf("%w: namespace %.200q: name= and layout= are needed", seq.ErrBadArgument, text)
	}
	if alias := *fields["alias"]; alias != "" {
		n, err := strconv.ParseUint(alias, 10, 32)
		if err != nil || alias[0] == '0' {
			return Namespace{}, fmt.Errorf("%w: namespace %.200q: alias %q, expected 1 to 4294967295", seq.ErrBadArgument, text, alias)
		}
		e.Alias = uint32(n)
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

// Edit is a change of a namespace. An empty field keeps the present or the offered value.
type Edit struct {
	Name                       string
	Alias                      uint32
	Layout, Overflow, Rollback string
	Version                    uint64 // the present version; zero if it is not recorded
}

// over returns the namespace with the edits. seq.ErrBadLayout.
func (e Edit) over(old Namespace) (Namespace, error) {
	ns := old
	ns.Name = e.Name
	if e.Alias != 0 {
		ns.Alias = e.Alias
	}
	var err error
	if e.Layout != "" {
		if ns.Layout, err = ParseLayout(e.Layout); err != nil {
			return ns, err
		}
	}
	p := ns.Layout.Policy()
	if e.Overflow != "" {
		if p.Overflow, err = snowflake.ParseOverflow(e.Overflow); err != nil {
			return ns, Reading.Name(err)
		}
	}
	if e.Rollback != "" {
		if p.Rollback, p.RollbackWait, err = snowflake.ParseRollback(e.Rollback); err != nil {
			return ns, Reading.Name(err)
		}
	}
	ns.Layout = ns.Layout.WithPolicy(p)
	return ns, nil
}
