package ui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// redraw is the time between two drawings of the line.
const redraw = 100 * time.Millisecond

// Progress shows how far a long job has come, in one line that is drawn over
// itself, on a terminal only; elsewhere it draws nothing. It is safe for
// concurrent use. Nothing else should write to the terminal before Done, which
// every user of one must call.
type Progress struct {
	w     io.Writer
	label string
	total uint64
	timed bool // what is counted is time, in ns
	start time.Time

	count atomic.Uint64
	note  atomic.Value // string: what is being done, behind the label

	stop chan struct{} // closed by Done; if nil, nothing is drawn
	once sync.Once
	task sync.WaitGroup
}

// NewProgress starts a progress line on w, usually stderr. total is the size of
// the job in whatever Add counts; 0 means that it is not known.
func NewProgress(w io.Writer, label string, total uint64) *Progress {
	return newProgress(w, label, total, false, IsTerminal(w))
}

// NewClock is NewProgress of a job of which it is known how long it takes. Nothing is to be
// added.
func NewClock(w io.Writer, label string, total time.Duration) *Progress {
	return newProgress(w, label, uint64(max(total, 1)), true, IsTerminal(w))
}

func newProgress(w io.Writer, label string, total uint64, timed, shown bool) *Progress {
	p := &Progress{w: w, label: clean(label), total: total, timed: timed, start: time.Now()}
	p.note.Store("")
	if !shown {
		return p
	}
	p.stop = make(chan struct{})
	p.task.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.draw("")
			case <-p.stop:
				p.draw("\n")
				return
			}
		}
	})
	return p
}

// Add says that n more are done.
func (p *Progress) Add(n uint64) { p.count.Add(n) }

// Say shows what is being done now, in place of what was said before.
func (p *Progress) Say(text string) { p.note.Store(clean(text)) }

// Done draws the line a last time and ends it. Later calls change nothing.
func (p *Progress) Done() {
	p.once.Do(func() {
		if p.stop != nil {
			close(p.stop)
			p.task.Wait()
		}
	})
}

// draw: a terminal that does not take the line is no reason to fail the job.
func (p *Progress) draw(end string) {
	elapsed := time.Since(p.start)
	count, number := p.count.Load(), Uint
	if p.timed {
		count = min(uint64(elapsed), p.total)
		number = func(ns uint64) string { return Duration(time.Duration(ns).Round(redraw)) }
	}
	label := p.label
	if note := p.note.Load().(string); note != "" {
		label += ": " + note
	}
	line := progressLine(label, count, p.total, elapsed, number, width(p.w)-1)
	_, _ = io.WriteString(p.w, "\r\x1b[K"+line+end)
}

// progressLine returns a line of at most columns characters: "label [=====> ] 52% 1,234/2,345 1.23s left
// 1.12s". In a narrow line the bar goes first, then the end of the line. Without a count and a total it
// shows only the time.
func progressLine(label string, count, total uint64, elapsed time.Duration, number func(uint64) string, columns int) string {
	switch {
	case total == 0 && count == 0:
		return cut(fmt.Sprintf("%s %s", label, Duration(elapsed)), columns)
	case total == 0:
		return cut(fmt.Sprintf("%s %s %s", label, number(count), Duration(elapsed)), columns)
	}
	share := min(float64(count)/float64(total), 1)
	tail := fmt.Sprintf("%3d%% %s/%s %s", int(share*100), number(count), number(total), Duration(elapsed))
	if left := float64(elapsed) * (1/share - 1); share > 0 && share < 1 && left < float64(1000*time.Hour) {
		tail += " left " + Duration(time.Duration(left))
	}
	const smallest, largest = 8, 40 // cells inside the brackets
	cells := min(columns-utf8.RuneCountInString(label)-utf8.RuneCountInString(tail)-4, largest)
	if cells < smallest {
		return cut(label+" "+tail, columns)
	}
	full := int(share * float64(cells))
	bar := strings.Repeat("=", full)
	if full < cells {
		bar += ">" + strings.Repeat(" ", cells-full-1)
	}
	return label + " [" + bar + "] " + tail
}

func cut(text string, columns int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(columns, 0))])
}
