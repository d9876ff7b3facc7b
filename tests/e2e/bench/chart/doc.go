// Package chart writes line charts with logarithmic axes as SVG: axis titles, ticks at
// powers of ten, a marker at each measured point, a legend. It is text in, text out.
//
// It is by hand: a library that plots brings fonts, pictures and dozens of packages for what
// is a hundred lines here.
//
// What belongs here: the drawing. What is drawn comes from the caller.
package chart
