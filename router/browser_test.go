package router_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// sent makes a request with headers, of which Host is the name that it is addressed to.
func sent(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	return reply.StatusCode, string(text)
}

func TestAPageThatPointsItsNameAtTheRouterTakesNoNumbers(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs(), HTTPHosts: []string{"seq.example.net"}, Leaf: true})
	base := "http://" + r.HTTPAddr()
	for _, row := range []struct {
		host, origin string
		want         int
		names        string // in the error
	}{
		{"", "", 200, ""},
		{"localhost:7480", "", 200, ""},
		{"[::1]:80", "", 200, ""},
		{"10.1.2.3", "", 200, ""},
		{"seq.example.net", "", 200, ""},
		{"SEQ.example.net.:7480", "", 200, ""},
		{"evil.example", "", 421, "--http-hosts"},
		{"evil.example:7480", "http://evil.example:7480", 421, "evil.example"},
		{"localhost.evil.example", "", 421, ""},
		{"seq.example.net.evil.example", "", 421, ""},
		{"", "http://evil.example", 403, "http://evil.example"},
		{"", "null", 403, "--http-hosts"},
		{"", "http://127.0.0.1:1", 403, ""},
		{"", "http://localhost", 403, ""},
		{"seq.example.net", "https://seq.example.net", 200, ""},
		{"127.0.0.1:7480", "https://seq.example.net:8443", 200, ""},
		{"localhost:7480", "http://localhost:7480", 200, ""},
		{"localhost:7480", "http://seq.example.net.evil.example", 403, ""},
	} {
		for _, path := range []string{"/v1/next", "/api/snowflake/v1/gen/", "/nothing"} {
			headers := []string{}
			if row.host != "" {
				headers = append(headers, "Host", row.host)
			}
			if row.origin != "" {
				headers = append(headers, "Origin", row.origin)
			}
			got, text := sent(t, http.MethodPost, base+path, `{"uid":1}`, headers...)
			if refused := got == 421 || got == 403; refused != (row.want != 200) || refused && (got != row.want || !strings.Contains(text, row.names)) {
				t.Errorf("%s for host %q of origin %q: got %d %s, want %d with %q", path, row.host, row.origin, got, text, row.want, row.names)
			}
		}
	}
	if got, text := sent(t, http.MethodPost, base+"/v1/next", `{"uid":1}`, "Origin", "http://seq.example.net", "Origin", "http://evil.example"); got != 403 {
		t.Errorf("two origins: got %d %s", got, text)
	}
	const taken = 9 // rows with 200, each once at /v1/next
	if _, text := sent(t, http.MethodPost, base+"/v1/next", `{"uid":1}`); !strings.Contains(text, `"first":10,`) {
		t.Errorf("after %d requests that were let in: got %s", taken, text)
	}
}

func TestABrowserTakesNoNumbersForAPageOfAnotherSite(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	for site, want := range map[string]int{"none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
		got, text := sent(t, http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", `{"uid":1}`, "Sec-Fetch-Site", site)
		if got != want || want == 403 && !strings.Contains(text, "page") {
			t.Errorf("Sec-Fetch-Site %q: got %d %s, want %d", site, got, text, want)
		}
	}
}

// The cases are requests that browsers send for an image, a script without a referrer, a link and a
// prefetched page.
func TestLeafsPathsAreForProgramsAlone(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	cluster.AddTag("orders")
	on := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true})
	for _, path := range []string{"/api/segment/get/orders", "/api/snowflake/get/default"} {
		for _, header := range [][]string{
			{"Referer", "http://evil.example/"},
			{"Accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"},
			{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"},
			{"Accept", "Image/PNG"},
			{"Accept", "*/*", "Accept-Language", "en-US,en;q=0.5"},
			{"Sec-Fetch-Site", "none"},
			{"Sec-Fetch-Site", "same-origin"},
			{"Sec-Fetch-Dest", "image"},
			{"Sec-Fetch-Mode", "no-cors"},
			{"Sec-Purpose", "prefetch"},
			{"Origin", "http://" + on.HTTPAddr()},
		} {
			got, text := sent(t, http.MethodGet, "http://"+on.HTTPAddr()+path, "", header...)
			if got != http.StatusForbidden || !strings.Contains(text, header[len(header)-2]) || !strings.Contains(text, "expected a program") {
				t.Errorf("%s with %q: got %d %s, want 403", path, header, got, text)
			}
		}
		for _, header := range [][]string{
			{},
			{"Accept", "*/*"},
			{"Accept", "text/plain, application/json, */*"},
			{"Accept", "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}, // java.net.HttpURLConnection
			{"User-Agent", "Mozilla/5.0"},
		} {
			if got, text := sent(t, http.MethodGet, "http://"+on.HTTPAddr()+path, "", header...); got != http.StatusOK {
				t.Errorf("%s with %q: got %d %s", path, header, got, text)
			}
		}
	}
	if _, text := sent(t, http.MethodGet, "http://"+on.HTTPAddr()+"/api/segment/get/orders", ""); text != "6" {
		t.Errorf("after 5 programs: got %s, want 6", text)
	}
	off := start(t, router.Config{Allocs: cluster.Addrs()})
	for _, path := range []string{"/api/segment/get/orders", "/api/snowflake/get/default"} {
		if got, text := sent(t, http.MethodGet, "http://"+off.HTTPAddr()+path, ""); got != http.StatusNotFound || !strings.Contains(text, "--leaf") {
			t.Errorf("%s of a router without --leaf: got %d %s", path, got, text)
		}
	}
	for _, path := range []string{"/cache", "/db", "/decodeSnowflakeId?snowflakeId=1169786042799259000"} {
		if got, text := sent(t, http.MethodGet, "http://"+off.HTTPAddr()+path, ""); got != http.StatusOK {
			t.Errorf("%s of a router without --leaf: got %d %s", path, got, text)
		}
	}
}

func TestNamesOfFrontsAreHostNames(t *testing.T) {
	for _, name := range []string{"", "http://a.example", "a.example:80", "*.example", "a b", "a/b"} {
		for _, cfg := range []router.Config{{HTTPHosts: []string{name}}, {ConsoleHosts: []string{name}}} {
			cfg.Listen, cfg.Allocs = "127.0.0.1:0", []string{"127.0.0.1:1"}
			if err := cfg.Validate(); !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), "Hosts") {
				t.Errorf("%q: got %v", name, err)
			}
		}
	}
}
