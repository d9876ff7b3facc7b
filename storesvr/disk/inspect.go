//go:build !wasip1

package disk

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Inspect reads and checks the database of a store that does not run, and writes nothing. A section
// of an exact space has its copy as payload, see quorum.RegisterState. Inspect returns the errors
// of Open.
func Inspect(dir string) (Meta, map[seq.Register]acceptor.State, error) {
	b, err := openBolt(filepath.Join(dir, FileName))
	if err != nil {
		return Meta{}, nil, fmt.Errorf("inspect database in %s: %w", dir, err)
	}
	d := &DB{dir: dir, bolt: b}
	meta, registers, err := d.load("")
	if err == nil {
		err = d.beside.inspect(dir, &meta, registers)
	}
	if err = errors.Join(err, d.beside.close(), b.Close()); err != nil {
		return Meta{}, nil, fmt.Errorf("inspect database in %s: %w", dir, err)
	}
	return meta, registers, nil
}
