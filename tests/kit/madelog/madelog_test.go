package madelog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/msglog"
)

var update = flag.Bool("update", false, "write the sample in tests/data anew")

// The sample that other tests and the documentation replay.
const (
	sampleSeed     = 1
	sampleUsers    = 100
	sampleMessages = 2000
)

var samplePath = filepath.Join("..", "..", "data", "sample.txt.gz")

func generate(t *testing.T, seed uint64, users, messages int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Generate(&out, seed, users, messages); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// readAll reads a log that has no bad line.
func readAll(t *testing.T, text []byte) (messages []msglog.Message) {
	t.Helper()
	for reader := msglog.NewReader(bytes.NewReader(text)); ; {
		m, err := reader.Next()
		if err == io.EOF {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
}

func TestTheCheckedInSampleIsWhatGenerateGives(t *testing.T) {
	want := generate(t, sampleSeed, sampleUsers, sampleMessages)
	if *update {
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), os.WriteFile(samplePath, packed.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	log, err := msglog.Open(samplePath)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	got, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from Generate: run this test with -update and look at what changed", samplePath)
	}
}

func TestAMadeLogIsSkewedOrderedAndOfTheSizeAskedFor(t *testing.T) {
	const users, messages = 100, 20_000
	got := readAll(t, generate(t, 7, users, messages))
	if len(got) != messages {
		t.Fatalf("got %d messages, want %d", len(got), messages)
	}
	received, last := make(map[uint64]int), int64(0)
	for i, m := range got {
		if m.Sender < 1 || m.Sender > users || m.Recipient < 1 || m.Recipient > users || m.Sender == m.Recipient {
			t.Fatalf("message %d is %+v", i, m)
		}
		if m.Seconds < last {
			t.Fatalf("message %d is of %d, before %d", i, m.Seconds, last)
		}
		last = m.Seconds
		received[m.Recipient]++
	}
	busiest := 0
	for _, n := range received {
		busiest = max(busiest, n)
	}
	// 1/(1 + 1/2 + ... + 1/100) is 0.193. The log is always the same one, so
	// this cannot fail by chance.
	if share := float64(busiest) / messages; share < 0.17 || share > 0.21 {
		t.Errorf("the busiest recipient has %.3f of the messages, want about 0.193", share)
	}
	if len(received) != users {
		t.Errorf("%d users received something, want %d", len(received), users)
	}
}

func TestTheSeedDecidesTheLog(t *testing.T) {
	if !bytes.Equal(generate(t, 3, 50, 100), generate(t, 3, 50, 100)) {
		t.Error("one seed gave two logs")
	}
	if bytes.Equal(generate(t, 3, 50, 100), generate(t, 4, 50, 100)) {
		t.Error("two seeds gave one log")
	}
}

func TestTheSmallestLogsCanBeMade(t *testing.T) {
	if got := generate(t, 1, 2, 0); len(got) != 0 {
		t.Errorf("got %q, want nothing", got)
	}
	if got := readAll(t, generate(t, 1, 2, 50)); len(got) != 50 {
		t.Errorf("got %d messages, want 50", len(got))
	}
}

func TestAnImpossibleSizeIsRefused(t *testing.T) {
	for _, size := range [][2]int{{1, 10}, {0, 0}, {-1, 1}, {2, -1}, {maxUsers + 1, 1}} {
		if err := Generate(io.Discard, 1, size[0], size[1]); !errors.Is(err, ErrSize) {
			t.Errorf("%d users, %d messages: got %v, want %v", size[0], size[1], err, ErrSize)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAFailedWriteIsReported(t *testing.T) {
	for _, messages := range []int{1, 10_000} {
		if err := Generate(full{}, 1, 10, messages); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%d messages: got %v, want %v", messages, err, io.ErrShortWrite)
		}
	}
}
