package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number is x in three digits, with k, M or G where it is large: 0.30, 4.12, 276 k.
func number(x float64) string {
	switch a := math.Abs(x); {
	case x == 0 || math.IsNaN(x) || math.IsInf(x, 0):
		return "0"
	case a >= 1e9:
		return digits(x/1e9) + " G"
	case a >= 1e6:
		return digits(x/1e6) + " M"
	case a >= 1e4:
		return digits(x/1e3) + " k"
	}
	return digits(x)
}

// digits is x with three of them.
func digits(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1000:
		return grouped(x)
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case a >= 0.1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// grouped is a whole number with commas.
func grouped(x float64) string {
	text := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// or is a figure, or a dash where there is none.
func or(x float64, text string) string {
	if x == 0 {
		return "–"
	}
	return text
}

// time is microseconds as people read them.
func duration(us float64) string {
	switch {
	case us == 0:
		return "–"
	case us < 1:
		return digits(us*1000) + " ns"
	case us < 1000:
		return digits(us) + " µs"
	case us < 1e6:
		return digits(us/1000) + " ms"
	}
	return digits(us/1e6) + " s"
}

// table writes a Markdown table; columns after the first are aligned to the right.
func table(b *strings.Builder, header []string, rows [][]string) {
	fmt.Fprintf(b, "| %s |\n|---|%s\n", strings.Join(header, " | "), strings.Repeat("---:|", len(header)-1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteByte('\n')
}
