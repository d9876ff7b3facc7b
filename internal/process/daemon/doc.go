// Package daemon is the part of main that all daemons share: signals, exit
// codes, the version verb and the logger. A main reads
//
//	func main() { os.Exit(daemon.Main("storesvr", os.Args[1:], storesvr.Run)) }
//
// It guarantees that the first SIGTERM or SIGINT only cancels the context, so
// that the daemon can drain; that a second one ends the process without waiting
// for anybody; that a log without a reader costs lines and stops nothing; and that
// the exit code says which kind of end it was:
//
//	0    done, or stopped by a signal after a clean drain
//	1    failed; the error is the last line on stderr
//	2    wrongly called (ErrUsage): starting it again cannot help
//	130  a second SIGINT cut the drain short
//	143  a second SIGTERM cut the drain short
//
// What a daemon does between start and stop belongs elsewhere, as does reading
// its configuration.
package daemon
