package backup

import "errors"

var (
	// ErrDamaged: the file is no whole backup: cut short, changed, or something else.
	ErrDamaged = errors.New("backup is damaged")
	// ErrSignature: the key was given, and the file was not made with it as it is.
	ErrSignature = errors.New("signature of the backup does not hold")
	// ErrUnsound: no cluster can have such registers.
	ErrUnsound = errors.New("registers are not sound")
	// ErrNewer: it has registers that this build has no rules for: restore it with the newer one.
	ErrNewer = errors.New("backup is of a newer build")
	// ErrEra: the era of a restore must be above the backup's era.
	ErrEra = errors.New("era of a restore must be given, and be above that of the backup")
	// ErrBump: a bump of nothing, or one for which a register has no room that is not near its end.
	ErrBump = errors.New("bump cannot be done")
)
