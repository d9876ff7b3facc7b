package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// errSetting: a variable of the environment cannot be what it is.
var errSetting = errors.New("bad setting")

// settings are the BENCH_ variables.
type settings struct {
	duration time.Duration // of one measurement
	runs     int
	only     []string // beginnings of ids; if empty, all
	asleep   bool     // leave it to the machine how deep its processors idle
}

func settingsOf(env func(string) string) (settings, error) {
	s := settings{duration: 2 * time.Second, runs: 5}
	if text := env("BENCH_SECONDS"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil || !(seconds >= 0.1 && seconds <= 600) {
			return settings{}, fmt.Errorf("%w: BENCH_SECONDS %q, expected 0.1 to 600", errSetting, text)
		}
		s.duration = time.Duration(seconds * float64(time.Second))
	}
	if text := env("BENCH_RUNS"); text != "" {
		runs, err := strconv.Atoi(text)
		if err != nil || runs < 1 || runs > 1000 {
			return settings{}, fmt.Errorf("%w: BENCH_RUNS %q, expected 1 to 1000", errSetting, text)
		}
		s.runs = runs
	}
	for _, part := range strings.Split(env("BENCH_ONLY"), ",") {
		if part = strings.TrimSpace(part); part != "" {
			s.only = append(s.only, part)
		}
	}
	switch text := env("BENCH_IDLE"); text {
	case "", "awake":
	case "machine":
		s.asleep = true
	default:
		return settings{}, fmt.Errorf("%w: BENCH_IDLE %q, expected awake or machine", errSetting, text)
	}
	return s, nil
}

// wants says whether an id is among those to measure.
func (s settings) wants(id string) bool {
	for _, part := range s.only {
		if strings.HasPrefix(id, part) {
			return true
		}
	}
	return len(s.only) == 0
}

// wantsAny says whether an id below the folder can be among them, so that its server is needed.
func (s settings) wantsAny(folder string) bool {
	for _, part := range s.only {
		if strings.HasPrefix(folder, part) || strings.HasPrefix(part, folder) {
			return true
		}
	}
	return len(s.only) == 0
}

// command is what was typed, for the report.
func (s settings) command() string {
	text := "make bench"
	if d := s.duration.Seconds(); d != 2 {
		text += " BENCH_SECONDS=" + strconv.FormatFloat(d, 'g', -1, 64)
	}
	if s.runs != 5 {
		text += " BENCH_RUNS=" + strconv.Itoa(s.runs)
	}
	if s.asleep {
		text += " BENCH_IDLE=machine"
	}
	if len(s.only) > 0 {
		text += " BENCH_ONLY=" + strings.Join(s.only, ",")
	}
	return text
}

// firstLine is what a program says of its version; empty where it is not installed.
func firstLine(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}
