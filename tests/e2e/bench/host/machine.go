package host

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Processor is its model, or the architecture where nothing tells it.
func Processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// Kernel is its name and release.
func Kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return "Linux " + string(bytes.TrimSpace(text))
}

// MemoryGB returns the memory of the machine, or 0 if it is unknown.
func MemoryGB() float64 {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0
	}
	return float64(info.Totalram) * float64(info.Unit) / (1 << 30)
}

// LoadAverage returns the load average of the last minute, or 0 if it is unknown.
func LoadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// fsyncs is the number of writes of Fsync.
const fsyncs = 200

// Fsync returns how long a write of 4 kB with fdatasync takes in a folder: half of the writes take at most
// p50, and 99 % at most p99.
func Fsync(dir string) (p50, p99 time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync.probe"))
	if err != nil {
		return 0, 0, fmt.Errorf("measure fdatasync: %w", err)
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	block := make([]byte, 4096)
	took := make([]time.Duration, fsyncs)
	for i := range took {
		began := time.Now()
		if _, err := f.WriteAt(block, int64(i%16)*4096); err != nil {
			return 0, 0, fmt.Errorf("measure fdatasync: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, 0, fmt.Errorf("measure fdatasync: %w", err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[fsyncs/2], took[fsyncs*99/100], nil
}
