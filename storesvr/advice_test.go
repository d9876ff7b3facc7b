package storesvr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// A sound disk of a newer build is not to be thrown away.
func TestAdviceIsToReplaceADamagedDiskAndToKeepANewerOne(t *testing.T) {
	const replace = "make a new disk"
	for err, made := range map[error]bool{disk.ErrCorrupt: true, disk.ErrFormat: true, disk.ErrNewer: false, seq.ErrProtocol: false,
		fmt.Errorf("%w: %w", disk.ErrNewer, disk.ErrFormat): false, fmt.Errorf("%w: %w", disk.ErrCorrupt, disk.ErrLostWrite): true} {
		if got := advice(fmt.Errorf("open: %w", err)); strings.Contains(got, replace) != made || got == "" {
			t.Errorf("%v: advice %q", err, got)
		}
	}
}
