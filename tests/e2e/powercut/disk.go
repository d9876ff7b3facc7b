package powercut

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// ErrMount: the directory cannot be read, or FUSE is not to be had here.
var ErrMount = errors.New("cannot mount")

// DefaultFree is the number of bytes that the disk reports as free.
const DefaultFree = 1 << 30

// Disk is a mounted directory. All methods are safe for concurrent use.
type Disk struct {
	dir    string
	server *fuse.Server
	root   *root

	mu      sync.Mutex // guards all below
	names   map[string]*image
	durable map[string]*image // names that a cut leaves
	ids     uint64            // of images, the last given out
	free    uint64
	full    bool
	failing bool
	slow    time.Duration
}

// Mount takes the files of dir as the durable content and mounts over it. Close the
// Disk in the end. ErrMount also for what is no plain file.
func Mount(dir string) (*Disk, error) {
	d := &Disk{dir: dir, names: map[string]*image{}, free: DefaultFree}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMount, err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return nil, fmt.Errorf("%w: %s is no plain file", ErrMount, filepath.Join(dir, e.Name()))
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMount, err)
		}
		d.ids++
		d.names[e.Name()] = newImage(d.ids, content)
	}
	d.durable = maps.Clone(d.names)
	d.root = &root{disk: d}
	never := time.Duration(0) // a cut changes names and lengths behind the kernel's back
	d.server, err = fs.Mount(dir, d.root, &fs.Options{
		EntryTimeout: &never, AttrTimeout: &never, NegativeTimeout: &never,
		MountOptions: fuse.MountOptions{FsName: "forgetfs", Name: "forgetfs", DirectMount: true, AllowOther: os.Geteuid() == 0},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMount, dir, err)
	}
	return d, nil
}

// Close unmounts. A mount that is still in use goes with its last user.
func (d *Disk) Close() error {
	if err := d.server.Unmount(); err != nil {
		const detach = 2 // MNT_DETACH
		if err := syscall.Unmount(d.dir, detach); err != nil {
			return fmt.Errorf("unmount %s: %w", d.dir, err)
		}
	}
	return nil
}

// Lost is what a cut found not yet confirmed.
type Lost struct {
	Sectors int // written or cut off, of all files
	Names   int // made, removed or renamed
}

// Forget drops everything that was not fsynced. No process may have a file open, because a power cut ends
// all users of the disk.
func (d *Disk) Forget() Lost {
	return d.cut(func(m *image) { m.forget() })
}

// Tear leaves a random part of what was not fsynced, by sectors; names go. The same
// caution as for Forget.
func (d *Disk) Tear(seed uint64) Lost {
	random := rand.New(rand.NewPCG(seed, 0))
	return d.cut(func(m *image) { m.tear(random) })
}

func (d *Disk) cut(do func(*image)) Lost {
	d.mu.Lock()
	var lost Lost
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if d.durable[name] != d.names[name] {
			lost.Names++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.durable)) {
		if d.names[name] == nil {
			lost.Names++
		}
		m := d.durable[name]
		lost.Sectors += m.pending()
		do(m)
	}
	d.names = maps.Clone(d.durable)
	d.mu.Unlock()
	d.root.drop()
	return lost
}

// Free sets how many bytes the disk says are left. It is what is told, no limit.
func (d *Disk) Free(bytes uint64) { d.set(func() { d.free = bytes }) }

// Full makes every write fail with ENOSPC.
func (d *Disk) Full(on bool) { d.set(func() { d.full = on }) }

// FailSync makes every fsync fail with EIO; what it should have confirmed stays as it is.
func (d *Disk) FailSync(on bool) { d.set(func() { d.failing = on }) }

// Slow makes every fsync take so much longer.
func (d *Disk) Slow(by time.Duration) { d.set(func() { d.slow = by }) }

func (d *Disk) set(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
}

// beforeSync waits and says whether the fsync is to fail. A caller that is killed
// meanwhile gets nothing confirmed; any other signal leaves the fsync alone, as it does
// on a disk: the Go runtime sends itself some.
func (d *Disk) beforeSync(ctx context.Context) syscall.Errno {
	d.mu.Lock()
	wait, failing := d.slow, d.failing
	d.mu.Unlock()
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
		if killed(ctx) {
			return syscall.EINTR
		}
		<-over.C
	}
	switch {
	case ctx.Err() != nil && killed(ctx):
		return syscall.EINTR
	case failing:
		return syscall.EIO
	}
	return 0
}

// killed says whether the thread that asked has a SIGKILL pending, or is gone. The system
// call of a killed thread returns only when the file system has answered.
func killed(ctx context.Context) bool {
	caller, ok := fuse.FromContext(ctx)
	if !ok {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", caller.Pid))
	if err != nil {
		return true
	}
	var pending uint64
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "SigPnd:"); ok {
			pending, err = strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
		}
	}
	return err != nil || pending&(1<<(uint(syscall.SIGKILL)-1)) != 0
}
