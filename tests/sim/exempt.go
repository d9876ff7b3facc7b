package sim

// What runs leave out as long as the code does not promise it. Each is switched on here.
const (
	// unknownToBackup has tags and worker ids used that a backup does not know, windows held
	// over a restore, backups made at any moment, and one restored that is of an era before.
	unknownToBackup = false
	// oldUnseen has an old disk reached by anybody for as long as a restarted store has a
	// grace. Later it is first reached by a session that has seen it newer.
	oldUnseen = true
)

// knownOnly says whether this run uses nothing that a backup of it may not know.
func (o Options) knownOnly() bool { return o.Care && !unknownToBackup }
