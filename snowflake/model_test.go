package snowflake

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// model is the generator written a second time, an ID at a time and without
// words, shifts or atomics. It says what Next must do.
type model struct {
	p               Policy
	perTick         uint64
	epoch, unit     int64
	seen, confirmed int64
	tick            int64
	used            uint64 // sequences used of tick
	maxTick         int64
	sealed          bool
}

func (m *model) next(c *handClock) (tick int64, sequence uint64, err error) {
	for !m.sealed {
		now := int64(-1)
		if c.ms >= m.epoch {
			now = (c.ms - m.epoch) / m.unit
		}
		free := m.used < m.perTick
		switch {
		case !free && m.tick == m.confirmed || now > m.confirmed:
			if now > m.maxTick || m.tick == m.maxTick {
				return 0, 0, ErrTimeExhausted
			}
			return 0, 0, ErrNoWindow
		case now > m.tick:
			m.tick, m.used = now, 0
		case now < m.seen && m.seen == 0:
			return 0, 0, ErrBeforeEpoch
		case now < m.seen && m.p.Rollback == RollbackRefuse:
			return 0, 0, ErrClockRollback
		case now < m.seen && m.p.Rollback == RollbackWait:
			gap := m.epoch + m.seen*m.unit - c.ms
			if gap > m.p.RollbackWait.Milliseconds() {
				return 0, 0, ErrClockRollback
			}
			c.ms += gap
			continue
		case free:
		case now < m.seen || m.p.Overflow == OverflowBorrow:
			m.tick, m.used = m.tick+1, 0
		case m.p.Overflow == OverflowRefuse:
			return 0, 0, ErrOverflow
		default:
			c.ms = m.epoch + (m.tick+1)*m.unit
			continue
		}
		m.seen = max(m.seen, now)
		m.used++
		return m.tick, m.used - 1, nil
	}
	return 0, 0, ErrSealed
}

func TestTheGeneratorDoesWhatTheModelDoes(t *testing.T) {
	named := []error{ErrNoWindow, ErrTimeExhausted, ErrBeforeEpoch, ErrClockRollback, ErrOverflow, ErrSealed}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"1ms", "10ms"}).Draw(t, "unit")
		l, err := ParseLayout("time:7,worker:2,sequence:2;epoch=1000;unit=" + unit)
		if err != nil {
			t.Fatal(err)
		}
		p := rapid.SampledFrom(allPolicies()).Draw(t, "policy")
		floor := Tick(rapid.Uint64Range(0, 127).Draw(t, "floor"))
		real, imagined := at(l, floor, 0), at(l, floor, 0)
		g, err := New(l, 0, 3, floor, WithPolicy(p), WithClock(real.now), WithSleeper(real.sleep))
		if err != nil {
			t.Fatal(err)
		}
		m := &model{p: p, perTick: 4, epoch: 1000, unit: l.unit, seen: int64(floor), confirmed: int64(floor),
			tick: int64(floor), used: 4, maxTick: 127}
		t.Repeat(map[string]func(*rapid.T){
			"clock": func(t *rapid.T) {
				by := rapid.Int64Range(-8, 12).Draw(t, "units") * l.unit
				by += rapid.Int64Range(-3, 3).Draw(t, "ms")
				real.ms, imagined.ms = real.ms+by, imagined.ms+by
			},
			"extend": func(t *rapid.T) {
				to := rapid.Int64Range(0, 20).Draw(t, "by") + m.confirmed - 5
				g.Extend(Tick(max(to, 0)))
				m.confirmed = min(max(m.confirmed, to), m.maxTick)
			},
			"next": func(t *rapid.T) {
				ids := make([]ID, rapid.IntRange(1, 20).Draw(t, "n"))
				n, got := g.NextN(context.Background(), ids)
				for i := range ids {
					tick, sequence, want := m.next(imagined)
					if want != nil {
						if n != i || !errors.Is(got, want) {
							t.Fatalf("id %d: got %d ids, %v, want %v", i, n, got, want)
						}
						for _, other := range named {
							if other != want && errors.Is(got, other) {
								t.Fatalf("id %d: got %v, which is also %v", i, got, other)
							}
						}
						break
					}
					id, err := l.Compose(Parts{Tick: Tick(tick), Worker: 3, Sequence: sequence})
					if err != nil || i >= n || ids[i] != id {
						t.Fatalf("id %d of %d: got %d, %v, want %d (tick %d sequence %d), %v", i, n, ids[i], got, id, tick, sequence, err)
					}
				}
				if real.ms != imagined.ms {
					t.Fatalf("clock after waits: got %d, want %d", real.ms, imagined.ms)
				}
			},
			"seal": func(t *rapid.T) {
				if rapid.IntRange(0, 15).Draw(t, "really") == 0 {
					m.sealed = true
					g.Seal()
				}
			},
			"": func(t *rapid.T) {
				if got := g.Last(); got != Tick(m.tick) {
					t.Fatalf("last: got %d, want %d", got, m.tick)
				}
			},
		})
	})
}
