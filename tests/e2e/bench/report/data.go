package report

import (
	"cmp"
	"slices"
)

// Data is everything the report tells. It is kept as JSON beside the report, so that
// the text can be made again without measuring again.
type Data struct {
	Machine  Machine   `json:"machine"`
	Seconds  float64   `json:"seconds"` // of one measurement
	Runs     int       `json:"runs"`    // rounds over all subjects
	Subjects []Subject `json:"subjects"`
	Skipped  []string  `json:"skipped"` // what was not measured, and why
	Growth   Growth    `json:"growth"`
}

// Machine is where it was measured.
type Machine struct {
	Date      string   `json:"date"`
	Cores     int      `json:"cores"`
	CPU       string   `json:"cpu"`
	Kernel    string   `json:"kernel"`
	MemoryGB  float64  `json:"memory_gb"`
	LoadStart float64  `json:"load_start"` // load average of a minute, before anything was started
	LoadEnd   float64  `json:"load_end"`
	Idling    string   `json:"idling"`     // how deep processors may idle
	IdleCores float64  `json:"idle_cores"` // used by all the servers together while nobody called
	Disk      string   `json:"disk"`       // folder of all the servers' data
	FsyncP50  float64  `json:"fsync_p50_us"`
	FsyncP99  float64  `json:"fsync_p99_us"`
	Versions  []string `json:"versions"`
	Command   string   `json:"command"`
}

// Subject is one thing measured, once a run.
type Subject struct {
	ID       string   `json:"id"`
	Group    string   `json:"group"`
	Title    string   `json:"title"`
	Callers  int      `json:"callers"`
	Unit     string   `json:"unit"`     // of the rate; if empty, numbers a second
	Durable  string   `json:"durable"`  // what an answer survives
	Baseline string   `json:"baseline"` // id of the subject that the ratio compares with; may be empty
	Command  string   `json:"command"`
	Samples  []Sample `json:"samples"`
}

// Sample is one measurement. 0 is not measured.
type Sample struct {
	Rate      float64 `json:"rate"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	P999      float64 `json:"p999_us"`
	ClientCPU float64 `json:"client_cpu_us"` // processor time for a number
	ServerCPU float64 `json:"server_cpu_us"`
	Commits   float64 `json:"commits"` // a second, of the store with the most
}

// Growth shows the growth of cost, one series of points each.
type Growth struct {
	UIDs     []Step `json:"uids"`
	Callers  []Step `json:"callers"`
	Sections []Step `json:"sections"`
	Stores   []Step `json:"stores"`
	Allocs   []Step `json:"allocs"`
}

// Step is one point of a growth: a size and what was measured there.
type Step struct {
	Size      float64 `json:"size"`
	Rate      float64 `json:"rate"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
	ServerCPU float64 `json:"server_cpu_us"`
	MemoryMB  float64 `json:"memory_mb"` // resident, of all AllocSvr
	ReadyMS   float64 `json:"ready_ms"`  // from the start of the processes until all sections are served
	RaiseUS   float64 `json:"raise_us"`  // p50 of a Raise above the ceiling: one durable write at W stores
}

// Median is the middle of what the samples have, each figure for itself.
func (s Subject) Median() Sample {
	at := func(get func(Sample) float64) float64 { return Median(s.Samples, get) }
	return Sample{
		Rate: at(func(x Sample) float64 { return x.Rate }), P50: at(func(x Sample) float64 { return x.P50 }),
		P99: at(func(x Sample) float64 { return x.P99 }), P999: at(func(x Sample) float64 { return x.P999 }),
		ClientCPU: at(func(x Sample) float64 { return x.ClientCPU }), ServerCPU: at(func(x Sample) float64 { return x.ServerCPU }),
		Commits: at(func(x Sample) float64 { return x.Commits }),
	}
}

// Median is the middle of what get gives of the list, 0 of an empty one.
func Median[T any](list []T, get func(T) float64) float64 {
	if len(list) == 0 {
		return 0
	}
	values := make([]float64, len(list))
	for i, x := range list {
		values[i] = get(x)
	}
	slices.SortFunc(values, cmp.Compare[float64])
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// MiddleStep is Median for the repetitions of one point of a growth.
func MiddleStep(list []Step) Step {
	at := func(get func(Step) float64) float64 { return Median(list, get) }
	return Step{
		Size: at(func(x Step) float64 { return x.Size }), Rate: at(func(x Step) float64 { return x.Rate }),
		P50: at(func(x Step) float64 { return x.P50 }), P99: at(func(x Step) float64 { return x.P99 }),
		ServerCPU: at(func(x Step) float64 { return x.ServerCPU }), MemoryMB: at(func(x Step) float64 { return x.MemoryMB }),
		ReadyMS: at(func(x Step) float64 { return x.ReadyMS }), RaiseUS: at(func(x Step) float64 { return x.RaiseUS }),
	}
}

// find is the subject of an id that has samples.
func (d Data) find(id string) (Subject, bool) {
	i := slices.IndexFunc(d.Subjects, func(s Subject) bool { return s.ID == id && len(s.Samples) > 0 })
	if i < 0 {
		return Subject{}, false
	}
	return d.Subjects[i], true
}

// figure is what a sample is compared by: its rate, or the time of what has none.
func (s Sample) figure() float64 {
	if s.Rate > 0 {
		return s.Rate
	}
	return s.P50
}

// ratio is the median of the ratios of the rounds, so that what slowed a whole round
// falls out; 0 where either was not measured.
func (d Data) ratio(id, base string) float64 {
	a, ok := d.find(id)
	b, also := d.find(base)
	if !ok || !also {
		return 0
	}
	var ratios []float64
	for i := range min(len(a.Samples), len(b.Samples)) {
		if base := b.Samples[i].figure(); base > 0 {
			ratios = append(ratios, a.Samples[i].figure()/base)
		}
	}
	return Median(ratios, func(x float64) float64 { return x })
}
