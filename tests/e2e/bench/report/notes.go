package report

// The groups of subjects.
const (
	GroupOwn      = "This tree: 3 StoreSvr, 1 AllocSvr, 1 router"
	GroupSteps    = "Store steps and takeover"
	GroupInside   = "In process"
	GroupRedis    = "Redis"
	GroupEtcd     = "etcd"
	GroupPostgres = "PostgreSQL"
)

// notes stand below the tables.
var notes = map[string]string{
	GroupOwn: "µs are processor time for a number, of the client's process and of all servers' processes together. Every process is a real one, " +
		"over\nTCP; stores fsync. The load comes from `seqctl bench`, which\nuses half of the processors, times one call in 16 of 64 callers or more, and checks on a sample that numbers rise.",
	GroupSteps: "Commits are of the store with the most, stores fsync each one. The takeover is the benchmark of `tests/bench`: its stores run in one " +
		"process and are\nasked over TCP; p50 is from the first PREPARE to the last confirmed STEP, without the look at the registers before it.",
	GroupInside: "`allocsvr` called as a function, over stores in memory: what is left without a network and gRPC. The rate is of one goroutine.",
	GroupRedis: "Loaded by `redis-benchmark`, written in C, which costs less of the machine than a client in Go: the kindest to Redis. Latency is that of a\n" +
		"pipeline as a whole. With 4,096 callers it runs twice as long, since its time has the connecting in it. What an answer survives is for one server; nothing is replicated.",
	GroupEtcd: "One member: no network and no second disk before an answer, the kindest to etcd. A transaction puts a key and reads it back, whose " +
		"version is the number.",
	GroupPostgres: "Prepared statements over 64 connections; `synchronous_commit` is on. `nextval` writes once for 32 numbers and skips the rest of them " +
		"after a crash;\n`UPDATE` is of random rows among 100,000, so that few wait for each other's lock.",
}
