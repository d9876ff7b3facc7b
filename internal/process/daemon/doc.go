// Package daemon is the part of main that all daemons share: signals, exit codes, the version verb and the
// logger. A main reads
//
//	func main() { os.Exit(daemon.Main("storesvr", os.Args[1:], storesvr.Run)) }
//
// The first SIGTERM or SIGINT only cancels the context, so that the daemon can drain. A second one ends the
// process at once. A log without a reader loses lines and blocks nothing. The exit code tells how the
// daemon ended:
//
//	0    done, or stopped by a signal after a clean drain
//	1    failed; the error is the last line on stderr
//	2    wrongly called (ErrUsage): starting it again cannot help
//	130  a second SIGINT cut the drain short
//	143  a second SIGTERM cut the drain short
//
// The work of a daemon between start and stop belongs elsewhere, and so does reading its configuration.
package daemon
