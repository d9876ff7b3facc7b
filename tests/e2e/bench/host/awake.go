package host

import (
	"fmt"
	"os"
)

// latencyDevice takes how long, in microseconds, a processor may need to leave idling,
// for as long as the file is open: Linux' "PM QoS interface".
const latencyDevice = "/dev/cpu_dma_latency"

// StayAwake keeps the processors from idling in states that they need time to leave, as
// the profiles for low latency of servers do, for all programs of the machine alike, up
// to the call of end. In a virtual machine each wake-up of a halted processor goes by
// the host otherwise. It wants root or the right to write to the device.
func StayAwake() (end func(), err error) { return stayAwake(latencyDevice) }

func stayAwake(device string) (end func(), err error) {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("keep the processors awake: %w", err)
	}
	if _, err := f.Write(make([]byte, 4)); err != nil { // 0 as an int32
		_ = f.Close() // nothing was asked for
		return nil, fmt.Errorf("keep the processors awake: %w", err)
	}
	return func() { _ = f.Close() }, nil // closing is what takes the wish back
}
