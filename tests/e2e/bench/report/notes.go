package report

// The groups of subjects.
const (
	GroupOwn      = "This tree: 3 StoreSvr, 1 AllocSvr, 1 router"
	GroupClients  = "Libraries and clients of Redis"
	GroupSteps    = "Store steps and takeover"
	GroupEngines  = "StoreSvr and etcd"
	GroupInside   = "In process"
	GroupRedis    = "Redis"
	GroupEtcd     = "etcd"
	GroupPostgres = "PostgreSQL"
)

// notes stand below the tables.
var notes = map[string]string{
	GroupOwn: "By the SDK, unless the row says otherwise. Server µs are processor time of all servers for one number. Each server is a process; stores\n" +
		"fsync, and an answer is on the disks of 2 of 3. The load is `seqctl bench`, which checks on a sample that numbers rise;\n" +
		"for Redis `INCR` it is `redis-benchmark`, and those rows are compared with Redis at the same pipeline.",
	GroupClients: "Callers of a router that call again at once, over its port for Redis; each program has one process. Clients of Redis are as they come.",
	GroupSteps: "Sections of 100 busy UIDs step all the time. Commits are of the store with the most. p50 of the takeover, of 42,950 sections in all, is\n" +
		"from the first PREPARE to the last confirmed STEP, over TCP to stores in one process (`tests/bench`).",
	GroupEngines: "Two clusters of 3 StoreSvr or members of etcd, 1 AllocSvr and 1 router each, in turn. Commits are of the store with the most, or\n" +
		"revisions of etcd. An AllocSvr that is started finds its sections free: the one before has left in order. A takeover is by a session of\n" +
		"the bench's own, from the first PREPARE to the last confirmed STEP. Where there is no rate, the ratio is of times.",
	GroupInside: "`allocsvr` called as a function, by one goroutine, over stores in memory.",
	GroupRedis: "The load is `redis-benchmark`, in C, which uses less of the machine than a client in Go. Latency covers a whole pipeline.\n" +
		"Nothing is replicated.",
	GroupEtcd: "One member, so no second disk before an answer, which is on one disk. A transaction puts a key and reads its version.",
	GroupPostgres: "Prepared statements over 64 connections; `synchronous_commit` is on, and an answer is on one disk. `nextval` writes once for\n" +
		"32 numbers and skips the rest after a crash. `UPDATE` is of random rows among 100,000.",
}
