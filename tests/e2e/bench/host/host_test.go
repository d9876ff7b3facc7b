package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAServerIsStartedSeenAndStopped(t *testing.T) {
	s, err := Start(t.TempDir(), "sleeper", nil, "sleep", "600")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CPU(s.Pid(), os.Getpid()); err != nil {
		t.Errorf("processor time: %v", err)
	}
	if m, err := Memory(os.Getpid()); err != nil || m < 1<<20 {
		t.Errorf("got %v bytes and %v, want this process's memory", m, err)
	}
	found := false
	for _, pid := range Children(os.Getpid()) {
		found = found || pid == s.Pid()
	}
	if !found {
		t.Error("the child is not among the children")
	}
	s.Stop()
	if _, err := CPU(s.Pid()); err == nil {
		t.Error("a process that is gone has processor time")
	}
}

func TestAServerThatEndsIsToldWithItsLog(t *testing.T) {
	s, err := Start(t.TempDir(), "loser", nil, "sh", "-c", "echo no such setting; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = s.Until(ctx, func() error { return errors.New("not yet") })
	if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("got %v, want %v with the log", err, ErrEnded)
	}
}

func TestTheMachineTellsOfItself(t *testing.T) {
	if Processor() == "" || Kernel() == "Linux " || MemoryGB() <= 0 {
		t.Errorf("got %q, %q, %v", Processor(), Kernel(), MemoryGB())
	}
	p50, p99, err := Fsync(t.TempDir())
	if err != nil || p50 <= 0 || p99 < p50 {
		t.Errorf("got %v, %v, %v", p50, p99, err)
	}
}

func TestProcessorsAreKeptAwakeByFourZeroBytes(t *testing.T) {
	device := filepath.Join(t.TempDir(), "latency")
	if _, err := stayAwake(device); err == nil {
		t.Error("no error where there is no such device")
	}
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := stayAwake(device)
	if err != nil {
		t.Fatal(err)
	}
	end()
	if got, err := os.ReadFile(device); err != nil || string(got) != "\x00\x00\x00\x00" {
		t.Errorf("got %q and %v, want 0 as 32 bits", got, err)
	}
}
