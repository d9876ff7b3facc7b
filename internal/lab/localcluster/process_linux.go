package localcluster

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// childAttributes: a process group of its own, so that Ctrl-C on a terminal reaches
// the parent only, which stops the cluster in order; and death with the parent.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// isChild says whether pid is a child of parent. The command's name, in brackets,
// may hold anything; the parent is the second field after it.
func isChild(pid, parent int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return len(fields) > 1 && fields[1] == strconv.Itoa(parent)
}
