package drill

import (
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/lab"
)

// The picture's measures, in units of its view box.
const (
	pageWidth  = 1120.0
	left       = 64.0
	right      = 1100.0
	latencyTop = 24.0 // of the panel with one point a call
	latencyEnd = 324.0
	rateTop    = 364.0 // of the panel with answers a slice of time
	rateEnd    = 464.0
	slice      = 50 * time.Millisecond
	maxPoints  = 40_000 // more would only make the page slow
)

// picture is what the page's template draws. Paths are of points "M x y h 0".
type picture struct {
	*lab.Result
	Width            float64
	Known, New, Fail string // one point a call
	Bars             string
	Marks            []mark
	Ticks            []tick // of the time
	Rows             []tick // of the latency
	PeakRate         int
	First, Last      float64 // ms
}

// mark is a line of the timeline in the picture.
type mark struct {
	X      float64
	Number int
	Event  string
}

// tick is a label at a place of an axis.
type tick struct {
	At   float64
	Text string
}

// axis maps milliseconds after the fault to the width of the picture.
type axis struct{ first, last float64 }

func (a axis) x(at float64) float64 { return left + (right-left)*(at-a.first)/(a.last-a.first) }

// latencyY is the height of a call that took that long: logarithmic, 0.1 ms to 30 s.
func latencyY(d time.Duration) float64 {
	const least, most = -1.0, 4.5 // log10 of ms
	at := math.Log10(max(float64(d)/float64(time.Millisecond), 0.1))
	return latencyEnd - (latencyEnd-latencyTop)*(min(at, most)-least)/(most-least)
}

// writePage writes one page that needs nothing else: the answers over time, the
// timeline and the verdict.
func writePage(path string, r *lab.Result) error {
	var text strings.Builder
	if err := page.Execute(&text, draw(r)); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

func draw(r *lab.Result) *picture {
	p, calls := &picture{Result: r, Width: pageWidth}, slices.Clone(r.Calls)
	slices.SortFunc(calls, func(a, b history.Call) int { return int(a.End - b.End) })
	since := func(at time.Duration) float64 { return float64(at-r.Fault) / float64(time.Millisecond) }
	if len(calls) == 0 {
		return p
	}
	p.First, p.Last = since(calls[0].End), since(calls[len(calls)-1].End)
	for _, m := range r.Timeline {
		p.Last = max(p.Last, m.MS)
	}
	a := axis{p.First, max(p.Last, p.First+1)}
	p.points(calls, a, since)
	p.bars(calls, a, since)
	for i, m := range r.Timeline {
		p.Marks = append(p.Marks, mark{a.x(m.MS), i + 1, strings.ReplaceAll(m.Event, " ", "-")})
	}
	for at := math.Ceil(p.First/1000) * 1000; at <= p.Last; at += 1000 {
		p.Ticks = append(p.Ticks, tick{a.x(at), fmt.Sprintf("%+.0f s", at/1000)})
	}
	for _, d := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		p.Rows = append(p.Rows, tick{latencyY(d), d.String()})
	}
	return p
}

func (p *picture) points(calls []history.Call, a axis, since func(time.Duration) float64) {
	var seen, fresh, fail strings.Builder
	skip := 1 + len(calls)/maxPoints
	for i, c := range calls {
		took := c.End - c.Start
		// The slow ones are what matters: none of those is left out.
		if i%skip != 0 && took < 20*time.Millisecond && c.Err == "" {
			continue
		}
		out := &seen
		switch {
		case c.Err != "":
			out = &fail
		case !p.Result.Known(c.UID):
			out = &fresh
		}
		fmt.Fprintf(out, "M%.1f %.1fh0", a.x(since(c.End)), latencyY(took))
	}
	p.Known, p.New, p.Fail = seen.String(), fresh.String(), fail.String()
}

// bars counts the answers of each slice of time.
func (p *picture) bars(calls []history.Call, a axis, since func(time.Duration) float64) {
	width := float64(slice) / float64(time.Millisecond)
	counts := make([]int, int((p.Last-p.First)/width)+1)
	for _, c := range calls {
		if c.Err == "" {
			counts[int((since(c.End)-p.First)/width)]++
		}
	}
	peak := max(slices.Max(counts), 1)
	p.PeakRate = peak * int(time.Second/slice)
	var out strings.Builder
	for i, n := range counts {
		if n > 0 {
			fmt.Fprintf(&out, "M%.1f %.1fV%.1f", a.x(p.First+(float64(i)+0.5)*width), rateEnd, rateEnd-(rateEnd-rateTop)*float64(n)/float64(peak))
		}
	}
	p.Bars = out.String()
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{"inc": func(i int) int { return i + 1 }}).Parse(pageText))
