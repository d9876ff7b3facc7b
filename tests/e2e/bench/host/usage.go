package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errProc: /proc says something that this program does not understand.
var errProc = errors.New("unexpected text in /proc")

// tick is the unit of times in /proc: Linux gives hundredths of a second to user
// space whatever the kernel counts in.
const tick = 10 * time.Millisecond

// CPU is the processor time that processes used so far, all together. A process that
// is gone is an error: the figure would be too small.
func CPU(pids ...int) (time.Duration, error) {
	var all time.Duration
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name may hold anything
		if len(fields) < 13 {
			return 0, fmt.Errorf("%w: stat of %d", errProc, pid)
		}
		for _, field := range fields[11:13] { // utime, stime
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: stat of %d: %w", errProc, pid, err)
			}
			all += time.Duration(n) * tick
		}
	}
	return all, nil
}

// Children are the processes that pid started and those that they started, pid first.
func Children(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", out[i]))
		for _, task := range tasks {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", out[i], task.Name()))
			for _, field := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(field); err == nil {
					out = append(out, child)
				}
			}
		}
	}
	return out
}

// Memory is what a process has in memory, in bytes.
func Memory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("%w: no VmRSS in status of %d", errProc, pid)
}

// OwnCPU is the processor time of this process.
func OwnCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
