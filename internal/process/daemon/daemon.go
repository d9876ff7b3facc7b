package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/grpclog"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// The exit codes of Main, besides 128 + the number of a second signal.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
)

// Run is the whole life of a daemon. args are the arguments without the
// program's name; stdout is for results, stderr for the log. When ctx ends it
// drains and returns nil, or ctx.Err(), possibly wrapped, or what went wrong
// while draining. context.Cause(ctx) is then a *Stopped.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs a daemon until it ends or is told to end, and returns the exit code
// for os.Exit. It is the first call of main: from then on SIGHUP does not end the
// process, nor does a log that has no reader. stderr of run is an Output, which is
// written out for a second at most when Main returns.
//
// `--version` anywhere before "--", and the verb `version [-o
// text|json]`, are answered without calling run. An error of run is printed on
// stderr after the name, except pflag.ErrHelp, which counts as success: pflag
// has printed the help by then.
//
// After a second signal Main returns while run is still going. The caller must
// exit at once; what was not yet durable is then as lost as after kill -9,
// which every daemon must survive anyway.
func Main(name string, args []string, run Run) int {
	signal.Notify(earlyHangups, syscall.SIGHUP)
	_, out, done := Outlive(io.Discard, os.Stderr)
	defer done()
	log.SetOutput(out)
	grpclog.SetLoggerV2(libraryLog(out))
	return tool(name, args, out, run)
}

// Tool is Main for a program that a person runs: the end of its terminal or of the
// reader of its output ends it, and its messages wait for their reader.
func Tool(name string, args []string, run Run) int { return tool(name, args, os.Stderr, run) }

// Outlive has this process outlive the readers of its output, which done writes out.
func Outlive(stdout, stderr io.Writer) (outlivingStdout, outlivingStderr *Output, done func()) {
	signal.Ignore(syscall.SIGPIPE)
	a, b := NewOutput(stdout), NewOutput(stderr)
	return a, b, func() {
		a.Close()
		b.Close()
	}
}

// libraryLog writes to out what gRPC would write to stderr by itself.
func libraryLog(out io.Writer) grpclog.LoggerV2 {
	switch strings.ToLower(os.Getenv("GRPC_GO_LOG_SEVERITY_LEVEL")) {
	case "info":
		return grpclog.NewLoggerV2(out, io.Discard, io.Discard) // each level goes to those below it too
	case "warning":
		return grpclog.NewLoggerV2(io.Discard, out, io.Discard)
	}
	return grpclog.NewLoggerV2(io.Discard, io.Discard, out)
}

func tool(name string, args []string, stderr io.Writer, run Run) int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	return serve(name, args, os.Stdout, stderr, signals, run)
}

func serve(name string, args []string, stdout, stderr io.Writer, signals <-chan os.Signal, run Run) int {
	if asked, err := answerVersion(name, args, stdout); asked {
		return exitCode(name, stderr, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, args, stdout, stderr) }()
	stopping := false
	for {
		select {
		case err := <-ended:
			if stopping && isCleanStop(err) {
				err = nil
			}
			return exitCode(name, stderr, err)
		case received := <-signals:
			if stopping {
				fmt.Fprintf(stderr, "%s: second signal (%v), exiting at once\n", name, received)
				return signalCode(received)
			}
			stopping = true
			cancel(&Stopped{Signal: received})
		}
	}
}

func exitCode(name string, stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if errors.Is(err, ErrUsage) {
		return ExitUsage
	}
	return ExitFailure
}

// isCleanStop tells whether err says nothing but that the context ended. It
// follows single wraps only: an error that joins the cancellation with another
// one, say of a failed fsync while draining, must not pass for success.
func isCleanStop(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if _, stopped := err.(*Stopped); stopped || err == context.Canceled {
			return true
		}
	}
	return false
}

func signalCode(received os.Signal) int {
	if number, ok := received.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitFailure
}

// answerVersion writes the version if args ask for it, and tells whether they
// do.
func answerVersion(name string, args []string, stdout io.Writer) (asked bool, err error) {
	flags := args
	if end := slices.Index(args, "--"); end >= 0 {
		flags = args[:end]
	}
	if len(args) > 0 && args[0] == "version" {
		return true, versionVerb(name, args[1:], stdout)
	}
	if slices.Contains(flags, "--version") {
		_, err := fmt.Fprintf(stdout, "%s %s\n", name, version.String())
		return true, err
	}
	return false, nil
}

func versionVerb(name string, args []string, stdout io.Writer) error {
	fs := pflag.NewFlagSet(name+" version", pflag.ContinueOnError)
	format := fs.StringP("output", "o", "text", "text or json")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return Usage(fmt.Errorf("version: %w", err))
	}
	if fs.NArg() > 0 {
		return Usage(fmt.Errorf("version: %q is too much: expected flags only", fs.Arg(0)))
	}
	switch *format {
	case "text":
		_, err := fmt.Fprintf(stdout, "%s %s\n", name, version.String())
		return err
	case "json":
		_, err := stdout.Write(version.JSON())
		return err
	default:
		return Usage(fmt.Errorf("version: -o %q: expected text or json", *format))
	}
}
