package daemon

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/process/tracing/otlp"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// sampleFlag is the name of the flag that may change while a daemon traces.
const sampleFlag = "trace-sample"

// flushTime bounds how long a daemon that ends sends the spans that are left.
const flushTime = 2 * time.Second

func (c *Common) traceFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.TraceEndpoint, "trace-endpoint", "", "`address` of a collector of OpenTelemetry traces, OTLP over gRPC: host:port, or https://host:port for TLS; empty: no traces")
	fs.Float64Var(&c.TraceSample, sampleFlag, 0.01, "share of the calls that are traced, 0 to 1; calls whose caller decided go by that, and takeovers, hand-overs and what operators do are always traced")
	fs.StringVar(&c.TraceCA, "trace-ca", "", "PEM `file` of the CAs that the collector's certificate must be signed by; empty: the system's")
}

// traces are the settings of the exporter.
func (c *Common) traces(daemon string) otlp.Config {
	return otlp.Config{
		Endpoint: c.TraceEndpoint, Sample: c.TraceSample,
		Files:  rpc.TLSFiles{CA: c.TraceCA, Cert: c.TLSFiles.Cert, Key: c.TLSFiles.Key},
		Daemon: daemon, Instance: c.instance(), Logger: c.Logger,
	}
}

// instance is the node's name, or what tells it apart where it has none.
func (c *Common) instance() string {
	for _, name := range []string{"name", "advertise"} {
		if f := c.fs.Lookup(name); f != nil && f.Value.String() != "" {
			return f.Value.String()
		}
	}
	host, _ := os.Hostname() // a name is nicer, an empty one will do
	return host + "/" + strconv.Itoa(os.Getpid())
}

// checkTraces checks the settings. ErrUsage.
func (c *Common) checkTraces() error {
	t := c.traces("")
	if t.Endpoint == "" && t.Files.CA == "" {
		t.Endpoint = "localhost:4317" // for the other settings, which must be sound in any case
	}
	return Usage(t.Validate())
}

// startTraces sets Traces if there is somewhere to send them; the result ends that.
func (c *Common) startTraces(daemon string) (stop func(), err error) {
	if c.TraceEndpoint == "" {
		return func() {}, nil
	}
	e, err := otlp.Start(c.traces(daemon))
	if err != nil {
		return nil, Usage(err)
	}
	c.Traces, c.exporter = e.Tracer(), e
	c.Logger.Info("traces are sent", "to", c.TraceEndpoint, "sample", c.TraceSample)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			c.Logger.Warn("not all traces were sent", "error", err)
		}
	}, nil
}

// setSample is the live change of --trace-sample.
func (c *Common) setSample(text string) error {
	share, err := strconv.ParseFloat(text, 64)
	if err == nil {
		err = c.exporter.SetSample(share)
	}
	return err
}
