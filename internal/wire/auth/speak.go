package auth

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Speaks is what stands against a call of a method for a node, which Check has let in and
// whose message does not say for which: as Check.
func (g *Guard) Speaks(w Credentials, method, node string) error {
	if g == nil {
		return nil
	}
	h, err := g.hold(w)
	if err == nil {
		err = h.maySpeakFor(node)
	}
	return g.verdict(h, method, err)
}

// maySpeakFor is seq.ErrNotSession unless the node is the holder's own. Operators have
// sessions of no node.
func (h holder) maySpeakFor(node string) error {
	switch {
	case h.role == Alloc && h.id == string(Alloc)+"/"+node, h.role == Operator && node == "":
		return nil
	case node == "":
		return fmt.Errorf("%w: %s speaks for a session of no node, as AllocSvr of v0.1.0 do: upgrade it", seq.ErrNotSession, h.id)
	}
	return fmt.Errorf("%w: %s speaks for a session of node %.128q: expected its own, an AllocSvr's --name and the name in its certificate are the same", seq.ErrNotSession, h.id, node)
}
