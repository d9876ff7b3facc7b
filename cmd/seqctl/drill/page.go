package drill

import (
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
)

// The picture's measures, in units of its view box.
const (
	pageWidth  = 1120.0
	left       = 64.0
	right      = 1100.0
	latencyTop = 64.0 // of the panel with one point a call; above it are the labels of the timeline
	latencyEnd = 364.0
	rateTop    = 404.0 // of the panel with answers a slice of time
	rateEnd    = 504.0
	slice      = 50 * time.Millisecond
	maxPoints  = 40_000 // more would only make the page slow
)

// picture has the values for the page's template. Its paths consist of points "M x y h 0".
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
	Failed           string  // the reason of a failure; empty if the drill succeeded
}

// mark is a line of the timeline in the picture. Its label stands in one of several rows,
// so that none is drawn over another.
type mark struct {
	X      float64
	LX, LY float64 // of the label's left end
	Label  string  // if empty, the label before covers this mark, too
	Event  string
}

// verdict is the page's first line.
type verdict struct {
	Text string
	Bad  bool
}

// Verdict says in one line what the drill showed.
func (p *picture) Verdict() verdict {
	pause := ui.Duration(time.Duration(p.MaxPauseMS * float64(time.Millisecond)))
	switch {
	case p.Failed != "":
		return verdict{"FAILED, " + p.Failed, true}
	case p.Duplicates > 0 || p.Regressions > 0:
		return verdict{fmt.Sprintf("FAILED, %d duplicates and %d regressions", p.Duplicates, p.Regressions), true}
	case p.Errors > 0:
		return verdict{fmt.Sprintf("%d errors, no number repeated or fallen, longest pause %s", p.Errors, pause), true}
	}
	return verdict{"no error, no number repeated or fallen, longest pause " + pause, false}
}

// tick is a label at a place of an axis.
type tick struct {
	At   float64
	Text string
}

// axis maps milliseconds after the fault to the width of the picture.
type axis struct{ first, last float64 }

func (a axis) x(at float64) float64 { return left + (right-left)*(at-a.first)/(a.last-a.first) }

// latencyY returns the height of a call that took that long: logarithmic, 0.1 ms to 30 s.
func latencyY(d time.Duration) float64 {
	const least, most = -1.0, 4.5 // log10 of ms
	at := math.Log10(max(float64(d)/float64(time.Millisecond), 0.1))
	return latencyEnd - (latencyEnd-latencyTop)*(min(at, most)-least)/(most-least)
}

// sheet has the values for the page's template: one picture, or one for each mode.
type sheet []*picture

// Several reports whether the page compares modes.
func (s sheet) Several() bool { return len(s) > 1 }

// First returns the first picture.
func (s sheet) First() *picture { return s[0] }

// writePage writes one page that needs nothing else: the answers over time, the
// timeline and the verdict of each run.
func writePage(path string, runs ...told) error {
	var text strings.Builder
	var all sheet
	for _, r := range runs {
		p := draw(r.Result)
		if r.failed != nil {
			p.Failed = r.failed.Error()
		}
		all = append(all, p)
	}
	if err := page.Execute(&text, all); err != nil {
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
	p.marks(r.Timeline, a)
	step := tickStep(a)
	for at := math.Ceil(p.First/step) * step; at <= p.Last; at += step {
		p.Ticks = append(p.Ticks, tick{a.x(at), fmt.Sprintf("%+.0f s", at/1000)})
	}
	for _, d := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second} {
		p.Rows = append(p.Rows, tick{latencyY(d), d.String()})
	}
	return p
}

// Of the labels above the picture, in units of its view box.
const (
	labelRows  = 4
	labelRow   = 12.0 // height of one
	labelGap   = 4.0  // between two of a row
	digitWidth = 7.0
	tickWidth  = 60.0 // of a label of the time, with the gap beside it
)

// marks places the labels of the timeline: moments so near that their labels would touch
// stand in the next row, and where all rows are full they share a label, "7–9".
func (p *picture) marks(moments []lab.Moment, a axis) {
	var end [labelRows]float64 // of the last label of each row
	labelled, row := 0, 0      // the last mark with a label, and the row of that
	for i, m := range moments {
		number := strconv.Itoa(i + 1)
		mk := mark{X: a.x(m.MS), Event: strings.ReplaceAll(m.Event, " ", "-")}
		mk.LX = mk.X - digitWidth*float64(len(number))/2
		free := slices.IndexFunc(end[:], func(e float64) bool { return e == 0 || mk.LX >= e+labelGap })
		if free < 0 {
			before := &p.Marks[labelled]
			first, _, _ := strings.Cut(before.Label, "–")
			before.Label = first + "–" + number
			end[row] = before.LX + labelWidth(before.Label)
		} else {
			mk.Label, labelled, row = number, len(p.Marks), free
			end[row] = mk.LX + labelWidth(number)
		}
		mk.LY = latencyTop - labelGap - labelRow*float64(labelRows-1-row)
		p.Marks = append(p.Marks, mk)
	}
}

func labelWidth(text string) float64 { return digitWidth * float64(utf8.RuneCountInString(text)) }

// tickStep returns the least of 1, 2, 5, 10 ... seconds at which labels of the time do not touch.
func tickStep(a axis) float64 {
	for scale := 1000.0; ; scale *= 10 {
		for _, n := range []float64{1, 2, 5} {
			if a.x(a.first+n*scale)-left >= tickWidth {
				return n * scale
			}
		}
	}
}

func (p *picture) points(calls []history.Call, a axis, since func(time.Duration) float64) {
	var seen, fresh, fail strings.Builder
	skip := 1 + len(calls)/maxPoints
	for i, c := range calls {
		took := c.End - c.Start
		// The slow calls matter, so none of them is left out.
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
