package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// TraceFile is the file in the folder for temporary files by which a job's events are
// asked for. It is looked at after the run, so that it changes nothing.
const TraceFile = "sim-trace"

// Job is one run as another process asks for it.
type Job struct {
	Seed   uint64
	Engine Engine // if empty, StoreEngine
	// Faults are used instead of the ones that the seed gives, one a line, if
	// OwnFaults is set.
	Faults    []string
	OwnFaults bool
	// Length of the faulty part. Zero means the seed's own. The schedule of a shorter run is the beginning
	// of a longer run's schedule.
	Length time.Duration
}

// Options returns the options of the job's seed, with its faults.
func (j Job) Options() (Options, error) {
	o := OptionsOf(j.Seed).On(j.Engine)
	// Always there: a traced run that differed in anything would be another run.
	o.Trace = runtime.GOARCH == "wasm" || j.Traced()
	if j.Length > 0 {
		o.Length = j.Length
	}
	if !j.OwnFaults {
		return o, nil
	}
	faults, err := ParseSchedule(strings.Join(j.Faults, "\n"))
	if err != nil {
		return o, err
	}
	if faults == nil {
		faults = []Fault{}
	}
	for _, f := range faults {
		if !o.Engine.suits(f.Verb) {
			return o, fmt.Errorf("fault %q happens to no run on %s", f, o.Engine)
		}
	}
	o.Faults = faults
	return o, nil
}

// Traced says whether somebody wants to see the events.
func (j Job) Traced() bool {
	_, err := os.Stat(filepath.Join(os.TempDir(), TraceFile))
	return err == nil
}
