package powercut

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// mount skips where FUSE is not to be had.
func mount(t *testing.T, files map[string]string) (*Disk, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Mount(dir)
	if errors.Is(err, ErrMount) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, dir
}

func write(t *testing.T, path, content string, sync bool) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func syncDir(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}

// want reads a file; "" with missing means that there must be none.
func want(t *testing.T, path, content string, missing bool) {
	t.Helper()
	got, err := os.ReadFile(path)
	if missing != errors.Is(err, os.ErrNotExist) || !missing && err != nil {
		t.Errorf("%s: %v, want missing: %t", filepath.Base(path), err, missing)
	}
	if string(got) != content {
		t.Errorf("%s holds %q, want %q", filepath.Base(path), got, content)
	}
}

func TestACutForgetsWhatWasNotFsyncedAndNothingElse(t *testing.T) {
	d, dir := mount(t, map[string]string{"old": "before"})
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("old"), "BEFORE, and more", false)
	write(t, at("synced"), "kept", true)
	syncDir(t, dir)
	write(t, at("synced"), "KEPT?", false)
	write(t, at("named"), "the name lasts, the content does not", false)
	syncDir(t, dir)
	write(t, at("nameless"), "the content lasts, the name does not", true)
	for name, content := range map[string]string{"old": "BEFORE, and more", "synced": "KEPT?"} {
		want(t, at(name), content, false) // until the cut it is an ordinary file system
	}
	d.Forget()
	want(t, at("old"), "before", false)
	want(t, at("synced"), "kept", false)
	want(t, at("named"), "", false)
	want(t, at("nameless"), "", true)
	write(t, at("old"), "AFTER!", true)
	d.Forget()
	want(t, at("old"), "AFTER!", false)
}

func TestRenamesAndRemovalsLastOnceTheDirectoryIsFsynced(t *testing.T) {
	d, dir := mount(t, map[string]string{"a": "1", "b": "2", "c": "3"})
	at := func(name string) string { return filepath.Join(dir, name) }
	change := func() {
		if err := errors.Join(os.Rename(at("a"), at("b")), os.Remove(at("c"))); err != nil {
			t.Fatal(err)
		}
		want(t, at("a"), "", true)
		want(t, at("b"), "1", false)
		want(t, at("c"), "", true)
	}
	change()
	if lost := d.Forget(); lost.Names != 3 {
		t.Errorf("lost %+v, want 3 names: a, the b that was there, c", lost)
	}
	want(t, at("a"), "1", false)
	want(t, at("b"), "2", false)
	want(t, at("c"), "3", false)
	change()
	syncDir(t, dir)
	d.Forget()
	want(t, at("a"), "", true)
	want(t, at("b"), "1", false)
	want(t, at("c"), "", true)
}

// shown is what a mapping shows. The kernel reads it, in a system call: Go code that meets a missing
// page keeps its processor until the page is there, and the goroutine that serves the file system
// may be waiting for that processor, or the garbage collector for both, for ever.
func shown(t *testing.T, view []byte, spare string) []byte {
	t.Helper()
	if err := os.WriteFile(spare, view, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(spare)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestASharedMappingSeesWhatIsWritten(t *testing.T) {
	d, dir := mount(t, map[string]string{"db": string(make([]byte, 4*4096))})
	file, err := os.OpenFile(filepath.Join(dir, "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	view, err := syscall.Mmap(int(file.Fd()), 0, 4*4096, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 0))
	model, spare := make([]byte, 4*4096), filepath.Join(t.TempDir(), "spare") // on another file system
	for round := range 200 {
		off, data := random.IntN(3*4096), bytes.Repeat([]byte{byte(round + 1)}, 1+random.IntN(4096))
		if _, err := file.WriteAt(data, int64(off)); err != nil {
			t.Fatal(err)
		}
		copy(model[off:], data)
		if round%20 == 0 {
			if err := file.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(shown(t, view, spare), model) {
			t.Fatalf("round %d: the mapping does not show what was written", round)
		}
	}
	if err := syscall.Munmap(view); err != nil {
		t.Fatal(err)
	}
	d.Forget()
	got, err := os.ReadFile(filepath.Join(dir, "db"))
	if err != nil || bytes.Equal(got, model) {
		t.Errorf("after the cut everything is still there (%v)", err)
	}
}

func TestACutThatTearsLeavesEachSectorNewOrOld(t *testing.T) {
	d, dir := mount(t, map[string]string{"db": string(bytes.Repeat([]byte("o"), 64*Sector))})
	path := filepath.Join(dir, "db")
	old, fresh := 0, 0
	for seed := range uint64(8) {
		write(t, path, string(bytes.Repeat([]byte("o"), 64*Sector)), true)
		write(t, path, string(bytes.Repeat([]byte("n"), 60*Sector)), false)
		if lost := d.Tear(seed); lost.Sectors != 60 {
			t.Errorf("lost %+v, want 60 sectors", lost)
		}
		got, err := os.ReadFile(path)
		if err != nil || len(got) != 64*Sector {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		for s := 0; s < len(got); s += Sector {
			switch sector := got[s : s+Sector]; {
			case bytes.Equal(sector, bytes.Repeat([]byte("o"), Sector)):
				old++
			case bytes.Equal(sector, bytes.Repeat([]byte("n"), Sector)) && s < 60*Sector:
				fresh++
			default:
				t.Fatalf("sector %d is torn inside: %q", s/Sector, sector)
			}
		}
		d.Forget()
		if again, _ := os.ReadFile(path); !bytes.Equal(again, got) {
			t.Errorf("a second cut changed what the first had left")
		}
	}
	if old < 100 || fresh < 100 {
		t.Errorf("%d sectors old, %d new: want many of both", old, fresh)
	}
}

func TestTheDiskFailsAsItIsTold(t *testing.T) {
	d, dir := mount(t, map[string]string{"db": "durable"})
	file, err := os.OpenFile(filepath.Join(dir, "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put := func() error { _, err := file.WriteAt([]byte("changed"), 0); return err }
	d.Full(true)
	if err := put(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write on a full disk: %v", err)
	}
	d.Full(false)
	if err := put(); err != nil {
		t.Error(err)
	}
	d.FailSync(true)
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("fsync that is to fail: %v", err)
	}
	d.FailSync(false)
	d.Slow(30 * time.Millisecond)
	began := time.Now()
	if err := file.Sync(); err != nil || time.Since(began) < 30*time.Millisecond {
		t.Errorf("slow fsync took %v, %v", time.Since(began), err)
	}
	d.Free(12 << 20)
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || st.Bavail*uint64(st.Bsize) != 12<<20 {
		t.Errorf("free: %d, %v, want 12 MiB", st.Bavail*uint64(st.Bsize), err)
	}
}

func TestASignalThatDoesNotKillLeavesAnFsyncAlone(t *testing.T) {
	d, dir := mount(t, map[string]string{"db": "durable"})
	file, err := os.OpenFile(filepath.Join(dir, "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const slow = 200 * time.Millisecond
	d.Slow(slow)
	thread, synced := make(chan int, 1), make(chan error, 1)
	began := time.Now()
	go func() {
		runtime.LockOSThread()
		thread <- syscall.Gettid()
		synced <- syscall.Fdatasync(int(file.Fd()))
	}()
	tid := <-thread
	for {
		select {
		case err := <-synced:
			if took := time.Since(began); err != nil || took < slow {
				t.Errorf("fdatasync among signals: %v after %v, want no error after at least %v", err, took, slow)
			}
			return
		case <-time.After(10 * time.Millisecond):
			_ = syscall.Tgkill(os.Getpid(), tid, syscall.SIGURG) // as the runtime does to preempt
		}
	}
}

func TestAFailedFsyncConfirmsNothing(t *testing.T) {
	d, dir := mount(t, map[string]string{"db": "durable"})
	write(t, filepath.Join(dir, "db"), "changed", false)
	file, err := os.OpenFile(filepath.Join(dir, "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.FailSync(true)
	_ = file.Sync()
	_ = file.Close()
	d.FailSync(false)
	d.Forget()
	want(t, filepath.Join(dir, "db"), "durable", false)
}

func TestAnImageIsWhatWasWrittenAndACutWhatWasSynced(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := newImage(1, []byte("begin"))
		model, durable := []byte("begin"), []byte("begin")
		for range 40 {
			switch random.IntN(6) {
			case 0, 1, 2:
				off, data := random.Int64N(5*Sector), bytes.Repeat([]byte{byte(random.Uint32())}, random.IntN(2*Sector))
				if grow := int(off) + len(data) - len(model); grow > 0 {
					model = append(model, make([]byte, grow)...)
				}
				copy(model[off:], data)
				m.write(data, off)
			case 3:
				size := random.IntN(6 * Sector)
				for len(model) < size {
					model = append(model, 0)
				}
				model = model[:size]
				m.resize(int64(size))
			case 4:
				m.sync()
				durable = bytes.Clone(model)
			case 5:
				m.forget()
				model = bytes.Clone(durable)
			}
			if !bytes.Equal(m.now, model) || !bytes.Equal(m.durable, durable) {
				t.Fatalf("seed %d: the image differs from the model", seed)
			}
		}
	}
}
