// Package host is what the report needs of the machine: processes started and ended by
// their id, what they use, free ports, the disk's fdatasync, the name of the processor.
//
// What belongs here: the operating system (Linux). What is measured does not.
package host
