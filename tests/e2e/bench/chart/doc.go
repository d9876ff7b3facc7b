// Package chart writes line charts with logarithmic axes as SVG: axis titles, ticks at powers of ten, a
// marker at each measured point, a legend. It is text in, text out.
//
// It uses no library, because a plotting library brings fonts, pictures and dozens of packages for a
// hundred lines of code.
//
// What belongs here: the drawing. The caller brings the data.
package chart
