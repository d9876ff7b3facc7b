package allocsvr

import "errors"

// errInvariant: I1 to I7 would be broken; the process must stop before it hands
// out another number.
var errInvariant = errors.New("invariant broken")

// errTaking: a node is not ready, since nobody has some of the sections that the table gives
// to it. It takes them by itself.
var errTaking = errors.New("sections are being taken")
