package chart

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrNoPoints: a chart has no point that a logarithmic axis can show.
var ErrNoPoints = errors.New("chart without points above zero")

// Point is one measured value; both must be above 0 to be shown.
type Point struct{ X, Y float64 }

// Series is one line.
type Series struct {
	Name   string
	Points []Point // by rising X
}

// Chart is a picture: both axes are logarithmic.
type Chart struct {
	Title          string
	XTitle, YTitle string
	Series         []Series // at most six
}

// Size and margins in pixels; the plot lies between the margins.
const (
	width, height            = 640, 400
	left, right, top, bottom = 86, 24, 44, 58
)

var colors = []string{"#1f6fb2", "#c8501e", "#2e8540", "#7b4ea3", "#a67c00", "#5b6770"}

// axis maps values to pixels.
type axis struct {
	low, high float64 // powers of ten
	from, to  float64 // pixels
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-a.low)/(a.high-a.low)*(a.to-a.from)
}

// span is the powers of ten around the values; at least one decade.
func span(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Floor(math.Log10(v)+1e-9)), max(high, math.Ceil(math.Log10(v)-1e-9))
	}
	if high <= low {
		high = low + 1
	}
	return low, high
}

// SVG draws the chart. ErrNoPoints when nothing can be shown.
func (c Chart) SVG() (string, error) {
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			if p.X > 0 && p.Y > 0 {
				xs, ys = append(xs, p.X), append(ys, p.Y)
			}
		}
	}
	if len(xs) == 0 {
		return "", fmt.Errorf("%w: %s", ErrNoPoints, c.Title)
	}
	x := axis{from: left, to: width - right}
	y := axis{from: height - bottom, to: top}
	x.low, x.high = span(xs)
	y.low, y.high = span(ys)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, width/2, 22, "middle", `font-size="15" font-weight="bold"`, c.Title)
	grid(&b, x, y)
	text(&b, (left+width-right)/2, height-14, "middle", "", c.XTitle)
	fmt.Fprintf(&b, `<text x="18" y="%d" text-anchor="middle" transform="rotate(-90 18 %d)" fill="#222">%s</text>`+"\n",
		(top+height-bottom)/2, (top+height-bottom)/2, escape(c.YTitle))
	for i, s := range c.Series {
		line(&b, x, y, s, colors[i%len(colors)])
	}
	legend(&b, c.Series)
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// grid draws a line and a label at each power of ten, or every second where there
// are many.
func grid(b *strings.Builder, x, y axis) {
	step := func(a axis) float64 { return math.Ceil((a.high - a.low) / 8) }
	for e := x.low; e <= x.high+1e-9; e += step(x) {
		px := x.at(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#e0e0e0"/>`+"\n", px, top, px, height-bottom)
		text(b, px, height-bottom+18, "middle", "", label(e))
	}
	for e := y.low; e <= y.high+1e-9; e += step(y) {
		py := y.at(math.Pow(10, e))
		fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#e0e0e0"/>`+"\n", left, py, width-right, py)
		text(b, left-8, py+4, "end", "", label(e))
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#808080"/>`+"\n", left, top, width-left-right, height-top-bottom)
}

// label is a power of ten as people read it: 0.01, 100, 10k, 1M.
func label(exponent float64) string {
	e := int(math.Round(exponent))
	switch {
	case e >= 12:
		return "1e" + strconv.Itoa(e)
	case e >= 9:
		return strconv.Itoa(int(math.Pow10(e-9))) + "G"
	case e >= 6:
		return strconv.Itoa(int(math.Pow10(e-6))) + "M"
	case e >= 3:
		return strconv.Itoa(int(math.Pow10(e-3))) + "k"
	case e >= -4:
		return strconv.FormatFloat(math.Pow10(e), 'f', -1, 64)
	}
	return "1e" + strconv.Itoa(e)
}

func line(b *strings.Builder, x, y axis, s Series, color string) {
	var points []string
	for _, p := range s.Points {
		if p.X > 0 && p.Y > 0 {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(p.X), y.at(p.Y)))
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), color)
	for _, p := range points {
		cx, cy, _ := strings.Cut(p, ",")
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3.5" fill="%s"/>`+"\n", cx, cy, color)
	}
}

// legend stands above the plot, so that it hides no point.
func legend(b *strings.Builder, all []Series) {
	if len(all) < 2 {
		return
	}
	px := float64(left)
	for i, s := range all {
		fmt.Fprintf(b, `<rect x="%.1f" y="30" width="12" height="8" fill="%s"/>`+"\n", px, colors[i%len(colors)])
		text(b, px+17, 38, "start", "", s.Name)
		px += 17 + 7*float64(len(s.Name)) + 18
	}
}

func text(b *strings.Builder, x, y float64, anchor, more, s string) {
	if more != "" {
		more = " " + more
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222"%s>%s</text>`+"\n", x, y, anchor, more, escape(s))
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escape(s string) string { return escaper.Replace(s) }
