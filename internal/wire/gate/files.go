package gate

// manyFiles stands for a system without a bound of its own.
const manyFiles = 1 << 20

// FilesFor returns the number of connections that a listener may have: most of them at most, and no
// more than a share in eighths of the files of the process, so that the others keep theirs.
func FilesFor(most, eighths int) int { return max(1, min(most, MaxFiles()/8*eighths)) }
