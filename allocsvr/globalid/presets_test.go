package globalid

import (
	"errors"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestEachPresetThatIsListedMakesIDsThatAreDecodedBack(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	client := n.dial()
	listed, err := client.Layouts(long(t), &pb.SnowflakeLayoutsRequest{})
	if err != nil || len(listed.Layouts) != len(snowflake.PresetNames()) {
		t.Fatalf("got %v, %v", listed, err)
	}
	for _, l := range listed.Layouts {
		t.Run(l.Name, func(t *testing.T) {
			_, err := client.PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: l.Name, Layout: l.Name})
			if l.Name == ended {
				if !errors.Is(err, seq.ErrTimeExhausted) {
					t.Fatalf("got %v, want %v", err, seq.ErrTimeExhausted)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			now := c.wall.Load()
			got, err := client.Generate(long(t), &pb.SnowflakeGenerateRequest{Namespace: l.Name, Count: 10})
			if err != nil || len(got.Ids) != 10 || got.Layout != l.Name {
				t.Fatalf("got %v, %v", got, err)
			}
			for _, id := range got.Ids {
				for _, meant := range []*pb.SnowflakeDecodeRequest{{Namespace: l.Name}, {Layout: l.Name}, {Layout: l.Text}} {
					meant.Id = &pb.SnowflakeDecodeRequest_Number{Number: int64(id)}
					d, err := client.Decode(long(t), meant)
					if err != nil || d.WorkerId != got.WorkerId || d.DatacenterId != got.DatacenterId || d.Layout != l.Name || d.UnixMs > c.wall.Load()+l.UnitMs || d.UnixMs < now-l.UnitMs {
						t.Errorf("%d: got %v, %v", id, d, err)
					}
				}
			}
		})
	}
}

func TestANamespaceWhoseEpochHasNotBegunIsNotRecorded(t *testing.T) {
	const late = "time:41,worker:10,sequence:12;epoch=2130-01-01T00:00:00Z"
	c := newCluster(t)
	a := c.start("a")
	put := func(epoch time.Time) error {
		text := "time:41,worker:10,sequence:12;epoch=" + epoch.UTC().Format(time.RFC3339)
		_, err := a.dial().PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: "n" + epoch.Format("150405"), Layout: text})
		return err
	}
	now := time.UnixMilli(c.wall.Load())
	if err := put(now.Add(11 * time.Minute)); !errors.Is(err, seq.ErrBadLayout) || !strings.Contains(err.Error(), "2026-01-01T00:11:00Z") {
		t.Errorf("got %v, want %v with its begin", err, seq.ErrBadLayout)
	}
	if err := put(now.Add(9 * time.Minute)); err != nil {
		t.Errorf("within the tolerance for clocks: %v", err)
	}
	_, err := a.dial().PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: "future", Layout: late})
	if !errors.Is(err, seq.ErrBadLayout) {
		t.Errorf("got %v, want %v", err, seq.ErrBadLayout)
	}
	b := configured(t, c, "b", "name=future layout="+late)
	select {
	case err := <-b.done:
		if !errors.Is(err, seq.ErrBadLayout) || !strings.Contains(err.Error(), "future") {
			t.Errorf("a node with such a file: got %v, want its end by %v", err, seq.ErrBadLayout)
		}
	case <-time.After(patience):
		t.Errorf("a node with such a file runs, want its end by %v", seq.ErrBadLayout)
	}
}

func TestANamespaceOfABuildOfBeforeWhoseEpochHasNotBegunSaysSoAtOnce(t *testing.T) {
	c := newCluster(t)
	a := c.start("a")
	now := c.wall.Swap(time.Date(2131, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	c.add(a, "future", "time:41,worker:10,sequence:12;epoch=2130-01-01T00:00:00Z")
	c.wall.Store(now)
	if _, _, err := a.gen("future", 1); !errors.Is(err, seq.ErrBadLayout) || !strings.Contains(err.Error(), "2130-01-01") {
		t.Errorf("got %v, want %v", err, seq.ErrBadLayout)
	}
	a.jump(-2 * time.Minute) // then it may be the clock
	eventually(t, "the clock is said to be off", func() bool { _, _, err := a.gen("future", 1); return errors.Is(err, seq.ErrClockOff) })
}
