// Package clock reads the time since the machine was booted, on a clock that nobody sets. Leases may be
// measured with no other kind of time.
//
// # Why CLOCK_BOOTTIME
//
// Wall time jumps, so a lease must never be compared with it. CLOCK_MONOTONIC does not jump, but on Linux
// it stands still while the machine is suspended (a laptop lid, a paused and resumed virtual machine). An
// owner that slept for a minute would wake up and read a clock that has not moved. It would find its lease
// still good and hand out numbers beside its successor. CLOCK_BOOTTIME counts the time in suspend, so the
// same owner wakes up with its lease over. time.Now in Go reads CLOCK_MONOTONIC, so it does not help.
//
// The package guarantees that a clock never goes backwards in one boot, and that all processes of one
// machine (and one time namespace) read the same clock. It promises nothing between machines: two clocks
// may start anywhere and may run at rates that differ.
//
// Here belong sources of monotonic time and their doubles for tests. Wall time, timers and arithmetic on
// leases do not.
package clock
