// Command forgetfs mounts a disk that can lose power over a directory (see package
// powercut) and does as the lines on its standard input say, until that ends:
//
//	forget SEED | tear SEED    a power cut; answers what was lost
//	eio on|off                 every fsync fails
//	full on|off                every write fails for want of room
//	free BYTES                 what the disk says is left
//	slow MS                    every fsync takes so much longer
//
// Each line is answered by "ok", with what there is to tell, or "error: ..."; the first
// answer is for the mount.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/powercut"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: forgetfs DIRECTORY")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func serve(dir string, orders io.Reader, answers io.Writer) error {
	disk, err := powercut.Mount(dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(answers, "ok mounted")
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		text, err := obey(disk, strings.Fields(lines.Text()))
		if err != nil {
			text = "error: " + err.Error()
		}
		fmt.Fprintln(answers, text)
	}
	return disk.Close()
}

func obey(d *powercut.Disk, order []string) (string, error) {
	if len(order) != 2 {
		return "", fmt.Errorf("%q: expected an order and its value", order)
	}
	switch order[0] {
	case "eio", "full":
		on, known := map[string]bool{"on": true, "off": false}[order[1]], order[1] == "on" || order[1] == "off"
		if !known {
			return "", fmt.Errorf("%q: expected on or off", order[1])
		}
		if order[0] == "eio" {
			d.FailSync(on)
		} else {
			d.Full(on)
		}
		return "ok", nil
	}
	n, err := strconv.ParseUint(order[1], 10, 64)
	if err != nil {
		return "", fmt.Errorf("%q: expected a number", order[1])
	}
	var lost powercut.Lost
	switch order[0] {
	case "forget":
		lost = d.Forget()
	case "tear":
		lost = d.Tear(n)
	case "free":
		d.Free(n)
		return "ok", nil
	case "slow":
		d.Slow(time.Duration(n) * time.Millisecond)
		return "ok", nil
	default:
		return "", fmt.Errorf("unknown order %q", order[0])
	}
	return fmt.Sprintf("ok %d sectors, %d names were not fsynced", lost.Sectors, lost.Names), nil
}
