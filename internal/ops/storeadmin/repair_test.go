package storeadmin_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// wire lies between a Care and its stores: it fails one call of a kind, and keeps what
// the stores are filled with.
type wire struct {
	mu    sync.Mutex // guards all below
	kind  string     // the end of the method's name
	left  int        // calls of the kind that pass before the one that fails
	hit   bool
	cut   bool    // and all after it
	fills [][]int // sizes of the payloads of each message
}

// fail has the n-th call of the kind from now on fail, counted from 0.
func (w *wire) fail(kind string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind, w.left, w.hit, w.cut = kind, n, false, false
}

func (w *wire) pass(method string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hit && !w.cut || w.kind == "" || !strings.HasSuffix(method, "/"+w.kind) {
		return nil
	}
	if w.left--; w.left >= 0 {
		return nil
	}
	w.hit = true
	return status.Error(codes.Internal, "cut")
}

func (w *wire) wasHit() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hit
}

func (w *wire) options() []grpc.DialOption {
	return []grpc.DialOption{dialer,
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if err := w.pass(method); err != nil {
				return err
			}
			if fill, ok := req.(*pb.FillRequest); ok {
				var sizes []int
				for _, r := range fill.GetRecords() {
					sizes = append(sizes, len(r.GetPayload()))
				}
				w.mu.Lock()
				w.fills = append(w.fills, sizes)
				w.mu.Unlock()
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if err := w.pass(method); err != nil {
				return nil, err
			}
			return stream(ctx, desc, cc, method, opts...)
		})}
}

func openBy(t *testing.T, w *wire, stores ...*store) *storeadmin.Care {
	t.Helper()
	c, err := storeadmin.Open(within(t), addrs(stores...), w.options()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A step fails, and says so, if a store does not answer any one call while the stores are brought up to
// date and the new store is filled. The same step finishes it when it is repeated.
func TestAStepThatAStoreDoesNotAnswerFailsAndMayBeRepeated(t *testing.T) {
	s := founders(t, 3)
	want := confirmed(t, s)
	s[2].stop()
	fresh, w := learner(t, "n"), &wire{}
	c := openBy(t, w, s[:2]...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	failures := 0
	for i, step := range steps {
		if i == 1 || i == 3 { // these decide a list, which cannot be undone by another try
			run(t, []storeadmin.Step{step}, nil)
			continue
		}
		for _, kind := range []string{"Dump", "Fill"} {
			for n := 0; ; n++ {
				w.fail(kind, n)
				err := step.Run(within(t))
				if !w.wasHit() {
					if err != nil {
						t.Fatalf("%s, nothing fails: %v", step.Name, err) // no call is left that could
					}
					break
				}
				if failures++; err == nil {
					t.Errorf("%s: done although call %d of %s failed", step.Name, n, kind)
				}
			}
		}
	}
	if failures < 10 {
		t.Errorf("%d failures were tried, want those of each read and of the fill", failures)
	}
	s[0].stop()
	wantBases(t, want, group(t, s[1], fresh))
}

func TestTheNewStoreIsNotTakenForFilledIfAStoreGoesAwayAfterTheWait(t *testing.T) {
	s := founders(t, 3)
	s[2].stop()
	fresh, w := learner(t, "n"), &wire{}
	c := openBy(t, w, s[:2]...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	run(t, steps[:2], err)
	for _, x := range s[:2] {
		client, _ := at(t, x)
		for { // the fill need not wait for any lease of the list before
			if id, err := client.Describe(within(t)); err != nil {
				t.Fatal(err)
			} else if id.ListAge > 10*quorum.Guard {
				break
			}
		}
	}
	for n := range 3 {
		w.fail("Describe", 3+n) // the first three belong to the wait
		if err := steps[2].Run(within(t)); err == nil || !w.wasHit() {
			t.Errorf("the fill did not hear of store %d, and says %v", n, err)
		}
	}
	if _, id := at(t, fresh); id.Filled != 0 {
		t.Errorf("filled under list %d", id.Filled)
	}
	run(t, steps[2:], nil)
}

func TestADocumentThatCannotBeRepairedFailsTheStep(t *testing.T) {
	s := founders(t, 3)
	if _, err := group(t, s...).SwapDocument(within(t), alice, seq.RoutesRegister, 0, []byte("one")); err != nil {
		t.Fatal(err)
	}
	s[2].stop()
	fresh, w := learner(t, "n"), &wire{}
	c := openBy(t, w, s[:2]...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	w.fail("Prepare", 0)
	w.cut = true // nothing runs yet
	if err := steps[0].Run(within(t)); !errors.Is(err, seq.ErrNoQuorum) || !w.wasHit() {
		t.Errorf("got %v, want no quorum for the document", err)
	}
	w.fail("", 0)
	run(t, steps, nil)
}

func TestAStepEndsWithItsContextWhileStoresAreAway(t *testing.T) {
	s := founders(t, 3)
	c := open(t, s...)
	fresh := learner(t, "n")
	s[2].stop()
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	s[1].stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := steps[0].Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// A document may be larger than what one message is meant to bring: it travels alone.
func TestDocumentsOfAnySizeReachANewStoreInMessagesOfBoundedSize(t *testing.T) {
	const large, half = 5 << 20, 3 << 20
	s := founders(t, 3)
	g := group(t, s...)
	documents := map[seq.Register][]byte{
		seq.RoutesRegister: bytes.Repeat([]byte("r"), large),
		seq.EventsRegister: bytes.Repeat([]byte("x"), half),
		seq.TagsRegister:   bytes.Repeat([]byte("y"), half),
	}
	for reg, body := range documents {
		if _, err := g.SwapDocument(within(t), alice, reg, 0, body); err != nil {
			t.Fatal(err)
		}
	}
	s[0].stop()
	fresh, w := learner(t, "n"), &wire{}
	c := openBy(t, w, s[1:]...)
	steps, err := c.Replace(within(t), "a", fresh.addr, "")
	run(t, steps, err)
	for _, sizes := range w.fills {
		total, documents := 0, 0
		for _, size := range sizes {
			if total += size; size > 0 {
				documents++
			}
		}
		if total > 4<<20 && documents > 1 {
			t.Errorf("one message of %d documents with %d bytes", documents, total)
		}
	}
	s[1].stop()
	g = group(t, s[2], fresh)
	for reg, body := range documents {
		if doc, err := g.LoadDocument(within(t), bob, reg); err != nil || doc.Version != 1 || !bytes.Equal(doc.Body, body) {
			t.Errorf("%s: version %d with %d bytes, %v, want %d bytes", reg, doc.Version, len(doc.Body), err, len(body))
		}
	}
}
