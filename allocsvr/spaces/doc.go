// Package spaces decides which spaces a cluster has come to have since it was initialised: a
// document at the stores with the whole mapping, of which each version extends the one
// before. Stores take a mapping over only after it was decided there, so of the mappings that
// stores and nodes have, one always extends the other (docs/decisions.md, 052).
package spaces
