package ui

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// redraw is how long a drawn bar stays: often enough for an eye, and cheap.
const redraw = 100 * time.Millisecond

// Progress shows how far a long job has come, in one line that is drawn over
// itself, on a terminal only; elsewhere it draws nothing. It is safe for
// concurrent use. Nothing else should write to the terminal before Done.
type Progress struct {
	w       io.Writer
	label   string
	total   uint64
	enabled bool
	start   time.Time

	mu    sync.Mutex // guards the fields below and writes to w
	count uint64
	drawn time.Time // when the line was last drawn
	done  bool
}

// NewProgress starts a progress line on w, usually stderr. total is the size of
// the job in whatever Add counts; 0 means that it is not known.
func NewProgress(w io.Writer, label string, total uint64) *Progress {
	return &Progress{w: w, label: clean(label), total: total, enabled: IsTerminal(w), start: time.Now()}
}

// Add says that n more are done.
func (p *Progress) Add(n uint64) {
	if !p.enabled {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count += n
	if now := time.Now(); !p.done && now.Sub(p.drawn) >= redraw {
		p.drawn = now
		p.draw(now, "")
	}
}

// Done draws the line a last time and ends it. Further calls of Add and Done
// draw nothing.
func (p *Progress) Done() {
	if !p.enabled {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.done = true
		p.draw(time.Now(), "\n")
	}
}

// draw needs p.mu. A terminal that does not take the line is no reason to fail
// the job.
func (p *Progress) draw(now time.Time, end string) {
	line := progressLine(p.label, p.count, p.total, now.Sub(p.start), width(p.w)-1)
	_, _ = io.WriteString(p.w, "\r\x1b[K"+line+end)
}

// progressLine is at most columns wide:
// "label [=====>    ]  52% 1,234/2,345 1.23s left 1.12s". The bar gives way
// first, then the end of the line.
func progressLine(label string, count, total uint64, elapsed time.Duration, columns int) string {
	if total == 0 {
		return cut(fmt.Sprintf("%s %s %s", label, Uint(count), Duration(elapsed)), columns)
	}
	share := min(float64(count)/float64(total), 1)
	tail := fmt.Sprintf("%3d%% %s/%s %s", int(share*100), Uint(count), Uint(total), Duration(elapsed))
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
