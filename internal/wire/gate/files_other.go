//go:build !unix

package gate

// MaxFiles returns how many files and connections this process may have open.
func MaxFiles() int { return manyFiles }
