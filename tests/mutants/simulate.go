package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/tests/sim"
)

// The simulation is the package tests/sim itself, with its scenarios and kept seeds, and
// then so many seeds from simFirst on, each of simLength. Natively a run is not a function of
// its seed alone; on one thread it nearly is.
const (
	simPackage = "tests/sim"
	simFirst   = 5000
	simSeeds   = 30
	simLength  = 2 * time.Minute
)

// engine is what the registers of the runs are on, so that they meet the mutant.
func (m mutant) engine() sim.Engine {
	switch {
	case strings.HasPrefix(m.file, "internal/etcd/etcdstore/"):
		return sim.EtcdEngine
	case strings.HasPrefix(m.rule, "sets-"):
		return sim.SetsEngine
	}
	return sim.StoreEngine
}

// simulate says what the simulation caught the mutant by, if it did.
func (t *trial) simulate(seeds int, on sim.Engine) (by string, err error) {
	compiles, by, err := t.judge(simPackage, "")
	if hangs(by) {
		by = "" // no promise is broken by that, and virtual time may be what hangs
	}
	switch {
	case err != nil || compiles && by != "":
		return by, err
	case !compiles:
		return "", fmt.Errorf("the simulation does not compile: %s", by)
	}
	binary, _, err := t.compile(simPackage)
	if err != nil {
		return "", err
	}
	var jobs bytes.Buffer
	for seed := range seeds {
		job, err := json.Marshal(sim.Job{Seed: uint64(simFirst + seed), Engine: on, Length: simLength})
		if err != nil {
			return "", err
		}
		jobs.Write(append(job, '\n'))
	}
	cmd := exec.CommandContext(t.ctx, binary, "-test.run=^TestGuest$", "-test.timeout=30m")
	cmd.Dir, cmd.Stdin = t.path(simPackage), &jobs
	cmd.Env = []string{"SIM_JOB=-", "GOMAXPROCS=1"}
	output, err := t.command(cmd)
	if t.ctx.Err() != nil {
		return "", t.ctx.Err()
	}
	return violation(output, seeds, err)
}

// hangs says whether what broke a run off is that its time was over.
func hangs(by string) bool {
	return strings.Contains(by, "test timed out") || strings.Contains(by, "(hang: ")
}

// violation is the first that the output of a simulation tells, or how it broke off.
func violation(output []byte, seeds int, failure error) (by string, err error) {
	lines, ran := bufio.NewScanner(bytes.NewReader(output)), 0
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "RESULT ")
		if !ok {
			continue
		}
		var r sim.Result
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return "", err
		}
		if ran++; len(r.Violations) > 0 {
			return fmt.Sprintf("seed %d: %v", r.Seed, r.Violations[0]), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	switch what := broken.Find(output); {
	case hangs(string(what)):
		return "", nil
	case what != nil:
		return fmt.Sprintf("seed %d: %s", simFirst+ran, what), nil
	case failure != nil:
		return fmt.Sprintf("seed %d: the process ended: %v", simFirst+ran, failure), nil
	case ran < seeds:
		return "", fmt.Errorf("the simulation ran %d of %d seeds", ran, seeds)
	}
	return "", nil
}
