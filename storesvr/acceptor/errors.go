package acceptor

import "errors"

var (
	// ErrInvariant is returned by New, Prepare and Step when a register would break I1,
	// I2 or I3. The process must exit without answering anything.
	ErrInvariant = errors.New("register invariant broken")
	// ErrLeaseBound is returned by Renew for a lease longer than LeaseBound. Commit the
	// longer bound, call SetLeaseBound and renew again.
	ErrLeaseBound = errors.New("lease longer than the durable bound")
)
