package powercut

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// root is the directory.
type root struct {
	fs.Inode
	disk *Disk
}

var (
	_ = (fs.NodeLookuper)((*root)(nil))
	_ = (fs.NodeReaddirer)((*root)(nil))
	_ = (fs.NodeCreater)((*root)(nil))
	_ = (fs.NodeUnlinker)((*root)(nil))
	_ = (fs.NodeRenamer)((*root)(nil))
	_ = (fs.NodeFsyncer)((*root)(nil))
	_ = (fs.NodeStatfser)((*root)(nil))
	_ = (fs.NodeOpener)((*node)(nil))
	_ = (fs.NodeReader)((*node)(nil))
	_ = (fs.NodeWriter)((*node)(nil))
	_ = (fs.NodeFsyncer)((*node)(nil))
	_ = (fs.NodeGetattrer)((*node)(nil))
	_ = (fs.NodeSetattrer)((*node)(nil))
	_ = (fs.NodeStatfser)((*node)(nil))
)

// drop makes the kernel forget what it has cached of the files, which a cut has changed
// below it. The next open would do so too.
func (r *root) drop() {
	for _, child := range r.Children() {
		_ = child.NotifyContent(0, 0) // an error: the kernel had nothing of it
	}
}

// Lookup implements fs.NodeLookuper.
func (r *root) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	m := r.disk.names[name]
	if m == nil {
		return nil, syscall.ENOENT
	}
	attributes(m, &out.Attr)
	return r.child(ctx, m), 0
}

func (r *root) child(ctx context.Context, m *image) *fs.Inode {
	return r.NewInode(ctx, &node{disk: r.disk, image: m}, fs.StableAttr{Mode: syscall.S_IFREG, Ino: m.id + 1})
}

// Readdir implements fs.NodeReaddirer.
func (r *root) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	var list []fuse.DirEntry
	for _, name := range slices.Sorted(maps.Keys(r.disk.names)) {
		list = append(list, fuse.DirEntry{Name: name, Mode: syscall.S_IFREG, Ino: r.disk.names[name].id + 1})
	}
	return fs.NewListDirStream(list), 0
}

// Create implements fs.NodeCreater. The name lasts once the directory is fsynced.
func (r *root) Create(ctx context.Context, name string, _ uint32, _ uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	if r.disk.full {
		return nil, nil, 0, syscall.ENOSPC
	}
	m := r.disk.names[name]
	if m == nil {
		r.disk.ids++
		m = newImage(r.disk.ids, nil)
		r.disk.names[name] = m
	}
	attributes(m, &out.Attr)
	return r.child(ctx, m), nil, 0, 0
}

// Unlink implements fs.NodeUnlinker.
func (r *root) Unlink(_ context.Context, name string) syscall.Errno {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	delete(r.disk.names, name)
	return 0
}

// Rename implements fs.NodeRenamer: plain renames inside the directory.
func (r *root) Rename(_ context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	if parent.EmbeddedInode() != r.EmbeddedInode() || flags != 0 {
		return syscall.EINVAL
	}
	m := r.disk.names[name]
	if m == nil {
		return syscall.ENOENT
	}
	delete(r.disk.names, name)
	r.disk.names[newName] = m
	return 0
}

// Fsync implements fs.NodeFsyncer: of the directory, which confirms all names.
func (r *root) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	if errno := r.disk.beforeSync(ctx); errno != 0 {
		return errno
	}
	r.disk.mu.Lock()
	defer r.disk.mu.Unlock()
	r.disk.durable = maps.Clone(r.disk.names)
	return 0
}

// Statfs implements fs.NodeStatfser.
func (r *root) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return r.disk.statfs(out)
}

func (d *Disk) statfs(out *fuse.StatfsOut) syscall.Errno {
	const block = 4096
	d.mu.Lock()
	defer d.mu.Unlock()
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks = 2 * DefaultFree / block
	out.Bfree, out.Bavail = d.free/block, d.free/block
	return 0
}

// node is a file. Two names of one image cannot be, so neither can two nodes.
type node struct {
	fs.Inode
	disk  *Disk
	image *image
}

func attributes(m *image, out *fuse.Attr) {
	out.Mode = syscall.S_IFREG | 0o600
	out.Size = uint64(len(m.now))
	out.Blocks = (out.Size + Sector - 1) / Sector
	out.Nlink = 1
}

// Open implements fs.NodeOpener. Without FOPEN_KEEP_CACHE the kernel reads the file again. Without
// FOPEN_DIRECT_IO it may be mapped.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

// Read implements fs.NodeReader.
func (n *node) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if off >= int64(len(n.image.now)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(dest[:copy(dest, n.image.now[off:])]), 0
}

// Write implements fs.NodeWriter.
func (n *node) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.disk.full {
		return 0, syscall.ENOSPC
	}
	n.image.write(data, off)
	return uint32(len(data)), 0
}

// Fsync implements fs.NodeFsyncer. It confirms content and length, not the name.
func (n *node) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	if errno := n.disk.beforeSync(ctx); errno != 0 {
		return errno
	}
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.image.sync()
	return 0
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	attributes(n.image, &out.Attr)
	return 0
}

// Setattr implements fs.NodeSetattrer: lengths. Rights and times are not kept.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if size, ok := in.GetSize(); ok {
		if n.disk.full && size > uint64(len(n.image.now)) {
			return syscall.ENOSPC
		}
		n.image.resize(int64(size))
	}
	attributes(n.image, &out.Attr)
	return 0
}

// Statfs implements fs.NodeStatfser.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	return n.disk.statfs(out)
}
