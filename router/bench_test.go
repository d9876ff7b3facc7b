package router_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// BenchmarkHTTP is a call over a kept connection, from 32 callers at once.
func BenchmarkHTTP(b *testing.B) {
	cluster := clienttest.Start(b, 2)
	r := start(b, router.Config{Allocs: cluster.Addrs()})
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: (&net.Dialer{}).DialContext}}
	b.Cleanup(web.CloseIdleConnections)
	for _, call := range []struct{ path, body string }{
		{"/v1/next", `{"uid":42}`},
		{"/v1/batch", `{"uids":[1` + strings.Repeat(",18446744073709551615", 999) + `]}`},
		{"/v1/snowflake/generate", `{"count":1000}`},
	} {
		b.Run(call.path[1:], func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					reply, err := web.Post("http://"+r.HTTPAddr()+call.path, "application/json", strings.NewReader(call.body))
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, reply.Body)
					_ = reply.Body.Close()
					if reply.StatusCode != http.StatusOK {
						b.Errorf("%s: %s", call.path, reply.Status)
						return
					}
				}
			})
		})
	}
}
