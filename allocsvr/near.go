package allocsvr

import "github.com/seqsvr/seqsvr/seq"

// TakeNear takes numbers for callers within this process; see section.Table.TakeNear. Before
// the stores are reached, and of spaces that are not there, there are none.
func (s *Server) TakeNear(space string, uids []seq.UID, counts []uint32, first []uint64) (unordered bool) {
	p := s.parts.Load()
	if p == nil {
		return false
	}
	of, err := p.alloc.sections.Mapping().Space(space)
	if err != nil {
		return false
	}
	return p.alloc.sections.TakeNear(of, uids, counts, first)
}
