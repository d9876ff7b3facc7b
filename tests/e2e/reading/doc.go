// Package reading runs docs/reading.md: its SQL on PostgreSQL, under writers that die or wake up late and
// owners that are killed, and its commands on a cluster of processes. The statements are read out of the
// document. Each way that the document recommends must lose no row, and each that it warns of must lose
// some: else the run shows nothing.
package reading
