package otlp

import (
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/seqsvr/seqsvr/internal/process/tracing"
)

// rareMost bounds the rare roots that are kept beside the ratio, in each rareTime: what
// fails again and again, such as a takeover without a quorum, is not rare any more.
const (
	rareMost = 60
	rareTime = time.Minute
)

// sampler decides for roots: by the ratio, and for what is marked as rare in any case.
type sampler struct {
	ratio atomic.Pointer[sdk.Sampler]

	mu   sync.Mutex // guards all below
	from time.Time  // of the present rareTime
	rare int        // kept in it
}

func newSampler(share float64) *sampler {
	s := &sampler{}
	s.set(share)
	return s
}

func (s *sampler) set(share float64) {
	ratio := sdk.TraceIDRatioBased(share)
	s.ratio.Store(&ratio)
}

// ShouldSample implements sdk.Sampler.
func (s *sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	for _, a := range p.Attributes {
		if a.Key == tracing.RareKey && s.keep(time.Now()) {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return (*s.ratio.Load()).ShouldSample(p)
}

// keep says whether one more rare root is kept beside the ratio.
func (s *sampler) keep(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.from) >= rareTime {
		s.from, s.rare = now, 0
	}
	s.rare++
	return s.rare <= rareMost
}

// Description implements sdk.Sampler.
func (s *sampler) Description() string { return "rare, else " + (*s.ratio.Load()).Description() }
