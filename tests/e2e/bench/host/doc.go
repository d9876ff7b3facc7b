// Package host has the report's view of the machine: processes started and ended by their id, their use of
// resources, free ports, the disk's fdatasync, the name of the processor.
//
// What belongs here: the operating system (Linux). What does not: the measurements.
package host
