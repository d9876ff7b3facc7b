package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/floorfile"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// sectionsAtOnce is the number of sections that are raised at once, because each may wait for a write.
const sectionsAtOnce = 16

// chunk holds some lines, and how far the file has been read after them.
type chunk struct {
	uids   []floorfile.Line
	names  []floorfile.Line
	parts  []floorfile.Line // sections
	offset int64
	lines  int
	sum    string
}

// next reads a chunk. One with a bad line is none.
func (f *fileRaise) next() (*chunk, bool, error) {
	k, n := &chunk{}, 0
	for ; n < seq.MaxBatch; n++ {
		l, err := f.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && !l.Given {
			err = fmt.Errorf("line %d: %w: %s has no number", f.in.Line(), floorfile.ErrFormat, l.Name())
		}
		if err != nil {
			return nil, false, err
		}
		switch {
		case l.Sections > 0:
			k.parts = append(k.parts, l)
		case l.Key != "":
			k.names = append(k.names, l)
		default:
			k.uids = append(k.uids, l)
		}
	}
	k.offset, k.lines = f.in.At()
	k.sum = f.in.Sum()
	return k, n > 0, nil
}

// refusal is a line that was refused for good.
type refusal struct {
	line floorfile.Line
	err  error
}

// raise raises a chunk; the error is of one that may be done later.
func (f *fileRaise) raise(ctx context.Context, k *chunk) (refused []refusal, err error) {
	uids, floors := make([]seq.UID, len(k.uids)), floorsOf(k.uids)
	for i, l := range k.uids {
		uids[i] = l.UID
	}
	names := make([]string, len(k.names))
	for i, l := range k.names {
		names[i] = l.Key
	}
	if len(uids) > 0 {
		got, err := f.c.RaiseBatch(ctx, f.space.Name, uids, floors)
		if refused, err = sorted(refused, k.uids, got, err); err != nil {
			return nil, err
		}
	}
	if len(names) > 0 {
		got, err := f.c.RaiseKeys(ctx, f.space.Name, names, floorsOf(k.names))
		if refused, err = sorted(refused, k.names, got, err); err != nil {
			return nil, err
		}
	}
	ofSections, err := f.sections(ctx, k.parts)
	return append(refused, ofSections...), err
}

func floorsOf(lines []floorfile.Line) []seq.Seq {
	out := make([]seq.Seq, len(lines))
	for i, l := range lines {
		out[i] = l.AtLeast
	}
	return out
}

// sections raises all keys of some sections.
func (f *fileRaise) sections(ctx context.Context, lines []floorfile.Line) (refused []refusal, err error) {
	errs := make([]error, len(lines))
	some, ctx := errgroup.WithContext(ctx)
	some.SetLimit(sectionsAtOnce)
	for i, l := range lines {
		some.Go(func() error {
			if errs[i] = f.section(ctx, l); !forGood(errs[i]) {
				return errs[i]
			}
			return nil
		})
	}
	err = some.Wait()
	for i, l := range lines {
		if forGood(errs[i]) {
			refused = append(refused, refusal{l, errs[i]})
		}
	}
	return refused, err
}

// section raises all keys of a section.
func (f *fileRaise) section(ctx context.Context, l floorfile.Line) error {
	if l.Sections != f.space.Sections {
		return fmt.Errorf("%w: space %q has %d sections: other keys are in section %d here", seq.ErrBadMapping, f.space.Name, f.space.Sections, l.Section)
	}
	_, err := pb.NewAdminClient(f.c.Caller().OwnerOf(f.space.First+seq.SectionID(l.Section))).RaiseSection(ctx,
		&pb.RaiseSectionRequest{Space: f.space.Name, Section: l.Section, Sections: l.Sections, AtLeast: uint64(l.AtLeast)})
	return err
}

// sorted adds the lines that were refused for good. It returns any other error of a line as the error of
// all.
func sorted(refused []refusal, lines []floorfile.Line, got []client.Raised, err error) ([]refusal, error) {
	if err != nil {
		return refused, err
	}
	for i, r := range got {
		switch {
		case forGood(r.Err):
			refused = append(refused, refusal{lines[i], r.Err})
		case r.Err != nil:
			return refused, r.Err
		}
	}
	return refused, nil
}

// forGood reports whether the same line would be refused again.
func forGood(err error) bool {
	for _, one := range []error{seq.ErrJump, seq.ErrForbidden, seq.ErrOverflow, seq.ErrBadMapping, seq.ErrBadArgument} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
