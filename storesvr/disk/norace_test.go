//go:build !race

package disk

// raceDetector says that these tests run under it.
const raceDetector = false
