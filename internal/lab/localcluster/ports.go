package localcluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A cluster's ports are one aligned block. The first port of it is a guard that the
// cluster listens on for as long as it lives, also while its daemons are down: two
// clusters that start at the same time, in different processes, never get the same
// block, and no cluster takes the address of a daemon that is being restarted.
const (
	blockSize  = 128
	firstBlock = 10_000 / blockSize // other services often use the ports below
)

// portWait bounds how long a kept address may still be held by what was killed a
// moment ago.
const portWait = time.Second

// lastBlock keeps below the ports that the system gives to outgoing connections:
// one of those could sit on a daemon's port while it restarts.
func lastBlock() int {
	low := 32_768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) == 2 {
			if n, err := strconv.Atoi(fields[0]); err == nil && n >= 12_000 {
				low = n
			}
		}
	}
	return low/blockSize - 1
}

// guard takes the block for this process; the listener is to be kept open.
func guard(block int) (net.Listener, error) {
	return net.Listen("tcp", loopback(block*blockSize))
}

// pickBlock takes a random block in which all ports are free.
func pickBlock() (block int, lis net.Listener, err error) {
	last := lastBlock()
	count := last - firstBlock + 1
	start := rand.IntN(count)
	for i := range count {
		block = firstBlock + (start+i)%count
		if lis, err = guard(block); err != nil {
			continue
		}
		if blockFree(block) {
			return block, lis, nil
		}
		_ = lis.Close()
	}
	return 0, nil, fmt.Errorf("%w: tried %d blocks of %d", ErrNoPorts, count, blockSize)
}

func blockFree(block int) bool {
	for i := 1; i < blockSize; i++ {
		if free(loopback(block*blockSize+i)) != nil {
			return false
		}
	}
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// free says whether the address can be bound, for TCP and for UDP (gossip uses both).
func free(addr string) error {
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer lis.Close()
	packets, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	return packets.Close()
}

// waitFree waits until the address can be bound, at most portWait.
func waitFree(addr string) error {
	var err error
	for deadline := time.Now().Add(portWait); ; <-time.After(20 * time.Millisecond) {
		if err = free(addr); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s: %w", ErrAddrInUse, addr, err)
		}
	}
}
