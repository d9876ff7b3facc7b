package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// TestMain lets the test binary play the daemons: under their names it is a process
// that answers just enough to be started, found ready, hurt and stopped.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if name == "storesvr" || name == "allocsvr" || name == "router" {
		if err := fake(name, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeFlags are the flags of all daemons that the fakes look at; the others are
// taken and ignored.
type fakeFlags struct {
	listen, dataDir, name, pidFile, members, exit string
	supervise                                     bool
}

func fake(role string, args []string) error {
	var f fakeFlags
	fs := pflag.NewFlagSet(role, pflag.ContinueOnError)
	fs.ParseErrorsAllowlist.UnknownFlags = true
	fs.StringVar(&f.listen, "listen", "", "")
	fs.StringVar(&f.dataDir, "data-dir", "", "")
	fs.StringVar(&f.name, "name", "", "")
	fs.StringVar(&f.pidFile, "pid-file", "", "")
	fs.StringVar(&f.members, "members", "", "")
	fs.StringVar(&f.exit, "exit", "", "")
	fs.BoolVar(&f.supervise, "supervise", false, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case f.exit != "":
		return errors.New(f.exit)
	case fs.Arg(0) == "init":
		return fakeInit(f)
	case f.supervise:
		return fakeSupervise(f, args)
	}
	return fakeServe(f)
}

// fakeInit refuses a second time, as the real one does.
func fakeInit(f fakeFlags) error {
	if err := os.Mkdir(f.dataDir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.dataDir, "members"), []byte(f.members), 0o644)
}

// fakeSupervise starts itself as the child, again and again.
func fakeSupervise(f fakeFlags, args []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	for {
		child := exec.Command(os.Args[0], append(args, "--supervise=false")...)
		child.Args[0] = "allocsvr"
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			return err
		}
		if err := os.WriteFile(f.pidFile, []byte(strconv.Itoa(child.Process.Pid)), 0o644); err != nil {
			return err
		}
		ended := make(chan struct{})
		go func() { _ = child.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-signals:
			_ = child.Process.Signal(syscall.SIGTERM)
			<-ended
			return nil
		}
	}
}

type fakeStore struct{ pb.UnimplementedStoreServer }

type fakeDaemon struct {
	pb.UnimplementedAdminServer
	pb.UnimplementedSequenceServer
}

func (fakeStore) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeReply, error) {
	return &pb.DescribeReply{Voting: true, State: "voting"}, nil
}

func (fakeDaemon) Status(context.Context, *pb.StatusRequest) (*pb.StatusReply, error) {
	return &pb.StatusReply{Ready: true}, nil
}

func (fakeDaemon) Routes(context.Context, *pb.RoutesRequest) (*pb.RoutesReply, error) {
	return &pb.RoutesReply{Routes: &pb.RouteTable{Version: 1}}, nil
}

func (fakeDaemon) Current(context.Context, *pb.CurrentRequest) (*pb.CurrentReply, error) {
	return &pb.CurrentReply{Results: []*pb.CurrentResult{{Values: []uint64{0}}}}, nil
}

func fakeServe(f fakeFlags) error {
	lis, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	srv := grpc.NewServer()
	pb.RegisterStoreServer(srv, fakeStore{})
	pb.RegisterAdminServer(srv, fakeDaemon{})
	pb.RegisterSequenceServer(srv, fakeDaemon{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() { <-signals; srv.Stop() }()
	fmt.Printf("serving on %s\n", lis.Addr())
	return srv.Serve(lis)
}

// bin is a folder with the fakes.
func bin(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"storesvr", "allocsvr", "router"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func readState(t *testing.T, dir string) (s state) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func tail(t *testing.T, p *Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
