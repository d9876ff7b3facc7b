package spaces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/seq"
)

// Document is the document as a session changes it.
type Document struct {
	doc *documents.Document[seq.Mapping]
}

// New makes a Document. life bounds nothing here: each call has a context of its own.
func New(life context.Context, stores documents.Stores, session seq.Session) *Document {
	return &Document{documents.New(documents.Config[seq.Mapping]{
		Life: life, Stores: stores, Session: session, Register: seq.SpacesRegister, Parse: parse,
		Encode: func(m seq.Mapping) ([]byte, error) { return json.Marshal(m) },
	}, seq.Mapping{})}
}

// parse returns the zero mapping as long as none was decided.
func parse(body []byte) (m seq.Mapping, err error) {
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
// node's mapping is have. Add returns the errors of seq.Mapping.Add and documents.Document.Change.
func (d *Document) Add(ctx context.Context, have seq.Mapping, s seq.Space) (seq.Mapping, error) {
	m, err := d.doc.Change(ctx, func(now seq.Mapping, _ bool) (seq.Mapping, bool, error) {
		if len(now.Spaces) == 0 {
			now = have // nothing was ever added
		}
		if !now.Extends(have) {
			return now, false, fmt.Errorf("%w: this node has spaces that the document %s has not", seq.ErrBadMapping, seq.SpacesRegister)
		}
		return now.Add(s)
	})
	if errors.Is(err, seq.ErrUnknownRegister) {
		err = fmt.Errorf("%w: upgrade the stores first", err)
	}
	if err != nil {
		return seq.Mapping{}, fmt.Errorf("add space %q: %w", s.Name, err)
	}
	return m, nil
}
