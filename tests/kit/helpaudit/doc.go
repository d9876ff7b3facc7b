// Package helpaudit reads the help of a command as its user would, for tests: does every
// flag tell its unit and its default, every verb how to call it, and which verbs speak JSON.
//
// It guarantees nothing about what is said being true. What belongs here are rules that
// hold for every binary; the few exceptions stand in the tests of each.
package helpaudit
