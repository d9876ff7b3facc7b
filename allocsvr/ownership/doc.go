// Package ownership is how a node comes to own a fenced register, keeps it and loses it.
// Sections, segment tags, worker ids, what is delegated of them and the arbiter's lease
// all go this way; they differ in what they do with the outcome, which stays with them.
//
//	Acquire   look -> PREPARE -> STEP -> attach     a Bid says from where, and how far
//	Raise     STEP to a higher ceiling              an Owned says how far; Stepper has them wait for each other
//	Release   the lease ends at once                to a successor, or to none
//	Standing  is the epoch still the promised one?  for answers that must not be stale
//
// It guarantees that
//
//   - no promise is asked for before a look has found the register free, and none at or
//     below a round that was asked for before: a PREPARE that one store grants and another
//     refuses would depose a live owner for nothing;
//   - a Bid begins from the highest of W promises, at or above whatever was confirmed before;
//   - a ceiling counts once W stores have it, and nothing else does: what is refused or
//     unknown is told as Failed or Unconfirmed, and the old ceiling stays;
//   - a lease is asked for after the first ceiling is confirmed and after the owner has
//     noted the epoch, so that a loss that is told of at once finds it;
//   - the owner of a register under an epoch learns that a higher one was promised: from a
//     step by Owned.Lost, from a renewal by what quorum.Leases calls.
//
// A crash anywhere leaves a promise and at most a ceiling behind, which the next bid outbids.
//
// What belongs here: every write to a register on the stores, all at one moment in one
// message. What does not: which registers a node should own, what their numbers mean, the
// counting of stores and leases (quorum), documents.
package ownership
