package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// Prefix begins the name of every metric of this module.
const Prefix = "seq_"

// Metric is the name, help and labels of one metric whose value is read at the scrape.
type Metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// Gauge describes a value that may fall; name comes without Prefix.
func Gauge(name, help string, labels ...string) Metric {
	return Metric{prometheus.NewDesc(Prefix+name, help, labels, nil), prometheus.GaugeValue}
}

// Counter describes a value that only rises while the process lives; name comes without
// Prefix and ends in _total.
func Counter(name, help string, labels ...string) Metric {
	return Metric{prometheus.NewDesc(Prefix+name, help, labels, nil), prometheus.CounterValue}
}

// Distribution describes a histogram; name comes without Prefix and ends in its unit.
func Distribution(name, help string, labels ...string) Metric {
	return Metric{prometheus.NewDesc(Prefix+name, help, labels, nil), prometheus.UntypedValue}
}

// Send gives the value of one scrape, with one value for each label.
func (m Metric) Send(ch chan<- prometheus.Metric, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// Flag sends 1 for true and 0 for false.
func (m Metric) Flag(ch chan<- prometheus.Metric, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	m.Send(ch, value, labels...)
}

// Histogram sends the distribution so far.
func (m Metric) Histogram(ch chan<- prometheus.Metric, h *Histogram, labels ...string) {
	count, sum, buckets := h.read()
	ch <- prometheus.MustNewConstHistogram(m.desc, count, sum, buckets, labels...)
}

// Func collects whatever the function sends; a registry asks it at each scrape.
type Func func(ch chan<- prometheus.Metric)

// Describe announces nothing: what there is to see depends on the state of the daemon.
// The registry checks at each scrape that no metric comes twice.
func (Func) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (f Func) Collect(ch chan<- prometheus.Metric) { f(ch) }

var (
	buildInfo = Gauge("build_info", "Always 1; the labels are what runs.", "daemon", "version", "commit", "go")
	readiness = Gauge("ready", "1 while /readyz says yes: this process should get traffic.")
)

// Subject is what an admin listener shows: the metrics of a daemon, and whether it
// should get traffic. Ready is nil, or the reason why not. Both are called from many
// goroutines and must not wait for the network.
type Subject interface {
	prometheus.Collector
	Ready() error
}

// NewRegistry returns a registry with the metrics of a daemon and of its process: seq_build_info,
// seq_ready, go_* and process_*.
func NewRegistry(daemon string, of Subject) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		Func(func(ch chan<- prometheus.Metric) {
			v := version.Get()
			buildInfo.Send(ch, 1, daemon, v.Version, v.Commit, runtime.Version())
			readiness.Flag(ch, of.Ready() == nil)
		}))
	return r
}
