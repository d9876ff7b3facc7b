// Package sets decides which of several Sets has a section, and how a section moves from one to another. A
// Set is a whole system of StoreSvr and AllocSvr. All Sets share one mapping, so that a Set that fails
// stops only its own users. The idea is WeChat's.
//
//	Record  of each Set, a document at its own stores: which sections it has. It alone
//	        decides whether a Set serves a section.
//	Map     of the root Set, a document at its stores: which Set has which sections, and the
//	        moves that are under way. It tells callers and operators where to go.
//
// A move, of id m, from A to B:
//
//	root  the map notes the move             nothing has changed yet
//	A     Active -> Sealed(m)                no node of A gains the section any more
//	A     the owner stops, or a node of A gains the register and serves nothing: the ceiling
//	B     a node gains the register, with a max at or above the ceiling
//	B     Inactive -> Active(m)              the section has moved
//	root  the map says so and forgets the move
//	A     Sealed(m) -> Moved(m)
//
// A move can be taken back as long as B is not active: B -> Refused(m) and then A Sealed(m) -> Active(m).
// If A was never sealed, A -> Active(m) is enough, and A cannot be sealed for m afterwards. Each step is a
// compare-and-swap on one document or may be repeated. So if a coordinator ends anywhere, or runs twice,
// the next coordinator finishes its move.
//
// It guarantees that at most one Set lets its nodes serve a section at a time, given that
//
//   - a node reads the Record, linearizably, after W stores have promised it the register, and
//     serves only what is Active there;
//   - a coordinator activates at B only after all of A's owners have stopped, and reopens at A a
//     sealed section only after B has refused;
//   - ids of moves are never used twice.
//
// What belongs here: the documents and their rules, pure. What does not: who asks whom.
package sets
