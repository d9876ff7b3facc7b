// Package storeadmin tests the care of the stores with real processes under load: a dead
// store replaced by a command that is killed at every step, three stores made five and
// three again, a backup taken while the cluster serves, and its restore into a new era.
//
// Callers take numbers of an ordinary and of an exact space, of this with request ids. Every call
// is recorded, and the history is checked at the end: no number twice, none lower than one before
// it, and in the exact space, where all ids are looked up, no hole and no second answer. What
// belongs here: procedures as an operator runs them, with seqctl and storesvr. The steps alone
// are tested in internal/ops/storeadmin.
package storeadmin
