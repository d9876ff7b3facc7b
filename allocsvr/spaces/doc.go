// Package spaces decides which spaces a cluster has got since it was initialised. It has a document at the
// stores with the whole mapping, and each version extends the version before. Stores take a mapping over
// only after it was decided there. So of the mappings that stores and nodes have, one always extends the
// other (docs/decisions.md, 052).
//
// A command that dies before the swap did nothing. After the swap any later "space add" tells the stores.
// Once one store was told, an AllocSvr hears of the mapping within 5 s and tells the other stores. A store
// that is away is told when it returns. A backup has the decision of any store that it read.
package spaces
