package replay

import (
	"bufio"
	"io"
	"strconv"
	"sync"

	"github.com/seqsvr/seqsvr/internal/ops/msglog"
)

// window bounds how many messages may be under way at once: the oldest unanswered
// one holds up the reading of the log, not the memory.
const window = 1 << 16

// output writes answers in the order of the log although they come in any order. All
// methods are safe for concurrent use.
type output struct {
	mu    sync.Mutex // guards the fields below
	moved sync.Cond  // head went up, or the output was closed
	w     *bufio.Writer
	slots []answer // of index i at i % window
	head  uint64   // every index below it is written
	err   error    // the first failure of w; nothing is written after it
	shut  bool
}

type answer struct {
	done    bool
	message msglog.Message
	number  uint64
}

// newOutput writes to w; nil only keeps the window.
func newOutput(w io.Writer) *output {
	o := &output{slots: make([]answer, window)}
	if w != nil {
		o.w = bufio.NewWriterSize(w, 1<<16)
	}
	o.moved.L = &o.mu
	return o
}

// room waits until index is inside of the window. False if the output was closed.
func (o *output) room(index uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for index >= o.head+window && !o.shut {
		o.moved.Wait()
	}
	return !o.shut
}

// put takes the answer of an index and writes what has become contiguous.
func (o *output) put(index uint64, m msglog.Message, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots[index%window] = answer{true, m, number}
	before := o.head
	for slot := &o.slots[o.head%window]; slot.done; slot = &o.slots[o.head%window] {
		slot.done = false
		o.head++
		o.write(slot)
	}
	if o.head != before {
		o.moved.Broadcast()
	}
}

// write needs o.mu.
func (o *output) write(a *answer) {
	if o.w == nil || o.err != nil {
		return
	}
	line := o.w.AvailableBuffer()
	line = append(strconv.AppendUint(line, a.message.Recipient, 10), ' ')
	line = append(strconv.AppendUint(line, a.number, 10), ' ')
	line = append(strconv.AppendInt(line, a.message.Seconds, 10), '\n')
	_, o.err = o.w.Write(line)
}

// stop ends the waits for room.
func (o *output) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
	o.moved.Broadcast()
}

// finish writes the answers behind an unanswered message too, and gives the first
// failure. Call it when no put can come any more.
func (o *output) finish() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := o.head; i < o.head+window; i++ {
		if slot := &o.slots[i%window]; slot.done {
			o.write(slot)
		}
	}
	if o.w != nil && o.err == nil {
		o.err = o.w.Flush()
	}
	return o.err
}
