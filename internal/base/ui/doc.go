// Package ui is how a command shows its results: one value as a table for
// people, or as JSON or YAML for programs, with the same keys in both.
//
// It guarantees that what goes to a pipe or a file holds no colours and no
// progress bar, that NO_COLOR is obeyed, and that text from elsewhere (a key, a
// host name) cannot move the cursor or break a line of a table. 64-bit numbers
// keep all their digits in every format.
//
// The table is by hand: text/tabwriter aligns all columns to one side, counts colours as
// text and leaves spaces at the ends of lines. So is the way from JSON to YAML: a library
// that goes through maps loses the order of the keys.
//
// Formats and their pieces belong here; which columns a verb shows belongs to
// the verb.
package ui
