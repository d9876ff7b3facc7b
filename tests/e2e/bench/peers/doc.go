// Package peers starts and loads what a user would pick instead: Redis, etcd and
// PostgreSQL, each from the machine's packages, on a loopback port of its own, with
// its data below a given folder. Start gives ErrAbsent where a program is not
// installed. Nothing is left running after Stop.
//
// What belongs here: how each is set up and loaded to do as well as it can.
package peers
