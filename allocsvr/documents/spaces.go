package documents

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Spaces is the document of the spaces that a cluster has got since it was initialised. It holds the
// whole mapping, and each version extends the one before. Stores take a mapping over only after it was
// decided there, so of the mappings that stores and nodes have, one always extends the other
// (docs/decisions.md, 052).
//
// A command that dies before the swap did nothing. After the swap any later "space add" tells the stores. Once
// one store was told, an AllocSvr hears of the mapping within 5 s and tells the other stores. A store that
// is away is told when it returns. A backup has the decision of any store that it read.
type Spaces struct {
	doc *Document[seq.Mapping]
}

// NewSpaces makes Spaces. Each call has its own context, so life bounds none of them.
func NewSpaces(life context.Context, stores Stores, session seq.Session) *Spaces {
	return &Spaces{New(Config[seq.Mapping]{
		Life: life, Stores: stores, Session: session, Register: seq.SpacesRegister, Parse: parseSpaces,
		Encode: func(m seq.Mapping) ([]byte, error) { return json.Marshal(m) },
	}, seq.Mapping{})}
}

// parseSpaces returns the zero mapping as long as no mapping was decided.
func parseSpaces(body []byte) (m seq.Mapping, err error) {
	if len(body) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: %w", seq.ErrBadMapping, err)
	}
	return m, m.Validate()
}

// Add decides that the cluster has the space, and returns the mapping with it. Some stores may not know
// that mapping yet, also if the space was there already, as after an attempt that got no further. This
// node's mapping is have. Add returns the errors of seq.Mapping.Add and Document.Change.
func (d *Spaces) Add(ctx context.Context, have seq.Mapping, s seq.Space) (seq.Mapping, error) {
	m, err := d.doc.Change(ctx, func(now seq.Mapping, _ bool) (seq.Mapping, bool, error) {
		if len(now.Spaces) == 0 {
			now = have // nothing was ever added
		}
		if !now.Extends(have) {
			return now, false, fmt.Errorf("%w: this node has spaces that the document %s has not", seq.ErrBadMapping, seq.SpacesRegister)
		}
		return now.Add(s)
	})
	if err != nil {
		return seq.Mapping{}, fmt.Errorf("add space %q: %w", s.Name, upgrade(err))
	}
	return m, nil
}
