package main

// kind is what an exploration must end with.
type kind int

const (
	clean  kind = iota // no error
	mutant             // an error: a rule is left out
	limit              // an error that is promised to nobody: docs say so
)

// size says from which set on a configuration is explored.
type size int

const (
	quick size = iota
	full
	deep
)

// config is one exploration.
type config struct {
	name    string
	kind    kind
	size    size
	file    string
	defines string
}

const (
	// The definitions that the configurations of a family share.
	unclocked = "ROUNDS=2 NUMBERS=2"
	handed    = "HAND ROUNDS=2 NUMBERS=2"
	leased    = "LEASE FLAT T=1 ROUNDS=2"
	repaired  = "LEASE FLAT T=1 REPAIR OWNED PUNCTUAL ROUNDS=9"
	oldDisk   = "OLD OWNED ROUNDS=2 NUMBERS=2"
	preempted = "STRICT PUNCTUAL OWNED ROUNDS=2 NUMBERS=3"
)

// table is all that is explored: first what is clean, then what must be found.
var table = []config{
	{"register", clean, quick, "register.pml", unclocked},
	{"register-3-rounds", clean, deep, "register.pml", "ROUNDS=3 NUMBERS=2"},
	{"hand-over", clean, full, "register.pml", handed + " PUNCTUAL"},
	{"hand-over-late", clean, deep, "register.pml", handed},
	{"lease", clean, full, "register.pml", leased},
	{"lease-2-ticks", clean, deep, "register.pml", "LEASE FLAT T=2 ROUNDS=2"},
	{"lease-numbers", clean, deep, "register.pml", "LEASE T=1 ROUNDS=2 NUMBERS=2"},
	{"lease-hand-over", clean, deep, "register.pml", "LEASE T=1 HAND OWNED PUNCTUAL ROUNDS=2 NUMBERS=2"},
	{"repair", clean, full, "register.pml", repaired + " CRASHES=0 TRIES=2 REPAIRS=2"},
	{"repair-3-times", clean, deep, "register.pml", repaired + " CRASHES=0 TRIES=2 REPAIRS=3"},
	{"repair-restart", clean, full, "register.pml", repaired + " CRASHES=1 TRIES=1 REPAIRS=1"},
	// A session that may ask for a round again, without late messages: the merge alone suffices.
	{"repair-round-again", clean, full, "register.pml", repaired + " CRASHES=0 TRIES=2 REPAIRS=2 M_ROUND_AGAIN"},
	{"repair-numbers", clean, full, "register.pml", "REPAIR OWNED PUNCTUAL REPAIRS=1 TRIES=1 ROUNDS=3 NUMBERS=3"},
	{"old-disk", clean, full, "register.pml", oldDisk + " CRASHES=0 PUNCTUAL"},
	{"old-disk-served", clean, full, "register.pml", oldDisk + " FIRST CRASHES=0 PUNCTUAL"},
	// A section of a strict space is preempted at any time.
	{"preempt", clean, quick, "register.pml", preempted},
	{"preempt-late", clean, full, "register.pml", "STRICT OWNED ROUNDS=2 NUMBERS=2"},
	{"preempt-hand-over", clean, deep, "register.pml", preempted + " HAND"},
	{"members-shrink", clean, full, "members.pml", "ROUNDS=2"},
	{"members-replace", clean, deep, "members.pml", "REPLACE ROUNDS=2"},
	{"restore", clean, quick, "restore.pml", ""},
	{"restore-workers", clean, quick, "worker.pml", ""},

	{"promise-volatile", mutant, quick, "register.pml", unclocked + " M_PROMISE_VOLATILE"},
	{"step-unchecked", mutant, quick, "register.pml", unclocked + " M_STEP_UNCHECKED"},
	{"quorum-less", mutant, quick, "register.pml", unclocked + " M_QUORUM_LESS"},
	{"lease-less", mutant, quick, "register.pml", leased + " M_LEASE_LESS"},
	{"no-grace", mutant, quick, "register.pml", leased + " M_NO_GRACE"},
	{"attach-unchecked", mutant, quick, "register.pml", leased + " M_ATTACH_UNCHECKED"},
	{"prepare-ignores-lease", mutant, full, "register.pml", leased + " M_PREPARE_IGNORES_LEASE"},
	{"counted-from-answer", mutant, full, "register.pml", "LEASE FLAT T=2 ROUNDS=2 M_COUNTED_FROM_ANSWER"},
	{"stop-drops-grace", mutant, full, "register.pml", leased + " CRASHES=2 M_STOP_DROPS_GRACE"},
	{"round-again", mutant, full, "register.pml", "LEASE FLAT T=1 LATEPREPARE OWNED ROUNDS=4 M_ROUND_AGAIN"},
	{"merge-spares-others-only", mutant, quick, "register.pml", repaired + " CRASHES=0 TRIES=2 REPAIRS=2 M_ROUND_AGAIN M_MERGE_SPARES_OTHERS_ONLY"},
	{"look-less", mutant, quick, "register.pml", preempted + " M_LOOK_LESS"},
	{"look-before", mutant, quick, "register.pml", preempted + " M_LOOK_BEFORE"},
	{"preempt-volatile", mutant, quick, "register.pml", preempted + " M_PROMISE_VOLATILE"},
	{"preempt-less", mutant, quick, "register.pml", preempted + " M_QUORUM_LESS"},
	{"sealed-always-used", mutant, quick, "register.pml", handed + " M_SEALED_ALWAYS_USED"},
	{"release-before-seal", mutant, quick, "register.pml", handed + " M_RELEASE_BEFORE_SEAL"},
	{"merge-takes-lease", mutant, quick, "register.pml", repaired + " CRASHES=0 TRIES=1 REPAIRS=1 M_MERGE_TAKES_LEASE"},
	{"second-merge-frees", mutant, full, "register.pml", repaired + " CRASHES=0 TRIES=2 M_SECOND_MERGE_FREES"},
	{"merge-shortens", mutant, full, "register.pml", repaired + " CRASHES=0 TRIES=2 M_MERGE_SHORTENS"},
	{"stop-forgets-protected", mutant, full, "register.pml", repaired + " CRASHES=1 TRIES=2 REPAIRS=1 M_STOP_FORGETS_PROTECTED"},
	{"old-disk-votes", mutant, quick, "register.pml", oldDisk + " M_VOTES_AT_START"},
	{"old-disk-asks-fewer", mutant, full, "register.pml", oldDisk + " M_ASKS_FEWER"},
	{"replies-say-nothing", mutant, full, "register.pml", oldDisk + " FIRST CRASHES=0 PUNCTUAL M_REPLIES_SAY_NOTHING"},
	{"fellows-forget", mutant, full, "register.pml", oldDisk + " M_FELLOWS_FORGET"},
	{"list-not-repaired", mutant, full, "members.pml", "ROUNDS=3 M_NOT_REPAIRED"},
	{"repair-reads-fewer", mutant, full, "members.pml", "ROUNDS=3 M_READS_FEWER"},
	{"replace-reads-fewer", mutant, full, "members.pml", "REPLACE ROUNDS=2 M_READS_FEWER"},
	{"known-not-raised", mutant, quick, "restore.pml", "M_KNOWN_NOT_RAISED"},
	{"raised-once", mutant, quick, "restore.pml", "M_RAISED_ONCE"},
	{"unknown-at-zero", mutant, quick, "restore.pml", "M_UNKNOWN_AT_ZERO"},
	{"floor-from-backup", mutant, quick, "restore.pml", "M_FLOOR_FROM_BACKUP"},
	{"workers-floor-zero", mutant, quick, "worker.pml", "M_FLOOR_ZERO"},
	{"workers-floor-no-margin", mutant, quick, "worker.pml", "M_FLOOR_NO_MARGIN"},
	{"workers-restorers-clock", mutant, full, "worker.pml", "M_FLOOR_AT_RESTORERS_CLOCK"},

	{"old-disk-unseen", limit, full, "register.pml", oldDisk + " UNSEEN"},
	{"old-disk-unasked", limit, full, "register.pml", oldDisk + " UNASKED"},
	{"workers-two-clocks-wrong", limit, quick, "worker.pml", "M_CLOCKS_ALL_WRONG"},
}
