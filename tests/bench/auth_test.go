package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// BenchmarkAuth has callers of one SDK take single numbers of random UIDs from one AllocSvr:
// in plaintext, with TLS, and with TLS, a token, grants and a quota. Each iteration is a round
// of all three, so that a busy machine slows them alike; the ratios are medians of rounds. cpu is the
// processor time of a number, of callers and servers.
func BenchmarkAuth(b *testing.B) {
	const lap = 400 * time.Millisecond
	ways := []string{"plaintext", "tls", "auth"}
	var sdks []*client.Client
	for _, way := range ways {
		sdks = append(sdks, authSite(b, way))
	}
	for _, callers := range []int{64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			rates, costs := make([][]float64, len(ways)), make([][]float64, len(ways))
			for n := 0; b.Loop(); n++ {
				for i := range ways {
					i = (i + n) % len(ways) // none is always behind the same one
					before := processTime(b)
					taken := takeFor(b, sdks[i], callers, lap)
					rates[i] = append(rates[i], taken/lap.Seconds())
					costs[i] = append(costs[i], float64(processTime(b)-before)/taken)
				}
			}
			median := func(of, by []float64) float64 {
				var ratios []float64
				for n := range of {
					ratios = append(ratios, of[n]/by[n])
				}
				slices.Sort(ratios)
				return ratios[len(ratios)/2]
			}
			b.ReportMetric(median(rates[2], rates[1]), "auth/tls")
			b.ReportMetric(median(rates[1], rates[0]), "tls/plaintext")
			b.ReportMetric(median(costs[2], costs[1]), "cpu-auth/tls")
			b.ReportMetric(median(costs[1], costs[0]), "cpu-tls/plaintext")
		})
	}
}

// takeFor returns how many numbers the callers take in the time lap.
func takeFor(b *testing.B, sdk *client.Client, callers int, lap time.Duration) float64 {
	var taken atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for caller := range callers {
		all.Go(func() {
			for n := uint64(caller); time.Since(begun) < lap; n += uint64(callers) {
				if _, err := sdk.Next(b.Context(), client.Key{UID: uid(n % 100_000)}); err != nil {
					b.Error(err)
					return
				}
				taken.Add(1)
			}
		})
	}
	all.Wait()
	return float64(taken.Load())
}

// authSite is an AllocSvr of its own and an SDK that may use it.
func authSite(b *testing.B, way string) *client.Client {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Logger = "a1", "127.0.0.1:0", harness.Stores(b, 1, seq.Space{Sections: 64}), slog.New(slog.DiscardHandler)
	cfg.Lease = 10 * time.Second
	sdk := client.Config{Timeout: 30 * time.Second}
	if way != "plaintext" {
		dir := b.TempDir()
		must(auth.MakeCA(dir, "bench", time.Hour))
		ca, err := auth.OpenCA(dir)
		must(err)
		files := rpc.TLSFiles{Cert: filepath.Join(dir, "a.pem"), Key: filepath.Join(dir, "a-key.pem")} // asks for no certificate
		_, err = ca.Issue(auth.Cert{Role: auth.Alloc, Name: "a1", Hosts: []string{"127.0.0.1"}, Valid: time.Hour}, files.Cert, files.Key)
		must(err)
		cfg.TLS, err = rpc.NewTLS(files, nil)
		must(err)
		cfg.TLS.AllowPlaintext(rpc.DialPlaintext) // of the stores, which have no TLS
		sdk.TLS = &client.TLS{CAFile: filepath.Join(dir, auth.CAFile)}
		if way == "auth" {
			token, policy := auth.NewToken(), filepath.Join(dir, "policy.yaml")
			must(auth.AddToken(policy, auth.Entry{Name: "chat", Role: auth.Caller, Token: token.Hash(), Grants: []string{"user:take,read,rate=1000000000"}}))
			sdk.TokenFile = filepath.Join(dir, "token")
			must(os.WriteFile(sdk.TokenFile, []byte(token.Secret()), 0o600))
			cfg.TLS.Identify("bench", false)
			cfg.Guard, err = auth.New(auth.Config{Mode: auth.Require, Cluster: "bench", PolicyFile: policy})
			must(err)
		}
	}
	s, err := allocsvr.New(cfg)
	must(err)
	harness.Inside(b, "allocsvr", s.Run)
	sdk.Addrs = []string{s.Addr()}
	ctx, done := context.WithTimeout(b.Context(), time.Minute)
	defer done()
	c, err := client.New(ctx, sdk)
	must(err)
	b.Cleanup(func() { _ = c.Close() })
	_, err = c.Next(ctx, client.Key{UID: 1})
	must(err)
	return c
}
