// Package spaces decides which spaces a cluster has come to have since it was initialised: a
// document at the stores with the whole mapping, of which each version extends the one
// before. Stores take a mapping over only after it was decided there, so of the mappings that
// stores and nodes have, one always extends the other (docs/decisions.md, 052).
//
// A command that dies before the swap did nothing. After the swap any later "space add" tells
// the stores, and once one store was told, an AllocSvr hears of it within 5 s and tells the
// others. A store that is away is told when it returns. A backup has the decision of any store
// that it read.
package spaces
