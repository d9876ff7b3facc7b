// Package report turns measurements into docs/benchmarks.md: medians, ratios, the table
// of what was to be reached, plots, and an estimate on paper. It is pure: a Data in,
// text out; the same Data gives the same text.
//
// What belongs here: arithmetic on figures and their text. Nothing is measured here.
package report
