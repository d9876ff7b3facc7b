package line

// A read is offered minRoom at first, and twice as much each time it fills that.
const (
	minRoom = 4 << 10
	maxRoom = 128 << 10
)

// input holds the bytes that have come and were not consumed. It does no I/O.
//
//	0 <= begin <= len(buf)
type input struct {
	buf   []byte
	begin int // of what was not consumed
	want  int // size of the next read; zero means minRoom
}

// room returns where to put bytes, at least one. It ends the life of slices from unread. With
// little, room does not grow.
func (in *input) room(little bool) []byte {
	if in.begin > 0 {
		n := copy(in.buf, in.buf[in.begin:])
		in.buf, in.begin = in.buf[:n], 0
	}
	in.want = max(in.want, minRoom)
	if little {
		in.want = minRoom
	}
	if len(in.buf) == 0 && cap(in.buf) > 4*in.want {
		in.buf = nil
	}
	if cap(in.buf)-len(in.buf) < in.want {
		in.buf = append(make([]byte, 0, len(in.buf)+2*in.want), in.buf...)
	}
	return in.buf[len(in.buf) : len(in.buf)+in.want]
}

// fill notes that the first n bytes of room were filled.
func (in *input) fill(n int) {
	in.buf = in.buf[:len(in.buf)+n]
	if n == in.want {
		in.want = min(2*in.want, maxRoom)
	}
}

// unread returns the bytes that were not consumed.
func (in *input) unread() []byte { return in.buf[in.begin:] }

// open reports whether a part of a request has come, and the rest has not.
func (in *input) open() bool { return in.begin < len(in.buf) }

// drop gives up the room of an input that is empty.
func (in *input) drop() {
	if !in.open() {
		*in = input{}
	}
}
