package allocsvr

import "github.com/seqsvr/seqsvr/seq"

// TakeLocal takes numbers for callers within this process; see section.Table.TakeLocal. Before
// the stores are reached, and of spaces that are not there, there are none.
func (s *Server) TakeLocal(space string, uids []seq.UID, counts []uint32, first []uint64) (unordered bool) {
	p := s.parts.Load()
	if p == nil {
		return false
	}
	of, err := p.alloc.sections.Mapping().Space(space)
	if err != nil {
		return false
	}
	return p.alloc.sections.TakeLocal(of, uids, counts, first)
}
