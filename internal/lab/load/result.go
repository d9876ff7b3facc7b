package load

import "github.com/HdrHistogram/hdrhistogram-go"

// Result is what a run measured. The JSON names are fixed.
type Result struct {
	Seconds  float64           `json:"seconds"`          // measured, without the warm-up
	Calls    uint64            `json:"calls"`            // that succeeded
	Numbers  uint64            `json:"numbers"`          // that they got
	Rate     float64           `json:"rate"`             // numbers a second
	CallRate float64           `json:"calls_per_second"` // calls that succeeded
	Timed    uint64            `json:"timed"`            // of these calls, those whose time was taken
	Latency  Latency           `json:"latency_us"`       // of these
	Failed   uint64            `json:"failed"`           // calls with an error
	Errors   map[string]uint64 `json:"errors"`           // failed calls by kind
	// TotalNumbers also has the numbers of the warm-up and of the time in which the
	// last calls ended: what the service did for the whole run.
	TotalNumbers uint64 `json:"total_numbers"`
	// Behind tells that a rate was asked for and less than 98 % of it could be sent.
	Behind bool `json:"behind"`
}

// Latency of calls, in microseconds.
type Latency struct {
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	us := func(ns int64) float64 { return float64(ns) / 1000 }
	at := func(q float64) float64 { return us(h.ValueAtQuantile(q)) }
	return Latency{Min: us(h.Min()), Mean: h.Mean() / 1000, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: us(h.Max())}
}
