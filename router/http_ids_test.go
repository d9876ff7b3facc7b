package router_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// text makes a GET whose answer is text.
func text(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s: got %d %v %q, %v", url, resp.StatusCode, resp.Header, body, err)
	}
	return string(body)
}

// statusOf makes a request of which the answer has no body that matters.
func statusOf(t *testing.T, method, url string) (status int, allow string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Allow")
}

func TestAnIDOfANumberedNamespaceComesInItsEnvelope(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	url := "http://" + r.HTTPAddr() + "/api/snowflake/v1/gen/"
	layout, err := snowflake.Preset("regional")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, body := range []string{`{"namespace": 1}`, `{"namespace": "1"}`, `{"namespace": 2}`, `{"namespace": "regional-1"}`} {
		status, _, got := do(t, "POST", url, "application/json", body)
		data, _ := got["data"].(map[string]any)
		text, _ := data["snowflake_id_str"].(string)
		id, err := snowflake.Decimal.Parse(text)
		if status != http.StatusOK || err != nil || seen[text] {
			t.Fatalf("%s: got %d %v, %v", body, status, got, err)
		}
		seen[text] = true
		want := map[string]any{"message": "success", "code": 0.0, "data": map[string]any{
			"snowflake_id": float64(id), "datacenter_id": 1.0, "snowflake_id_str": text}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", body, diff)
		}
		if parts, err := layout.Decode(id); err != nil || parts.Datacenter != 1 {
			t.Errorf("%s: %d has parts %+v, %v", body, id, parts, err)
		}
	}
}

func TestThePathOfTheEnvelopeIsServedWithoutItsLastSlashToo(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/api/snowflake/v1/gen", "/api/snowflake/v1/gen/"} {
		resp, err := direct.Post("http://"+r.HTTPAddr()+path, "application/json", strings.NewReader(`{"namespace":1}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"code":0`) {
			t.Errorf("POST %s: got %d %s, %v", path, resp.StatusCode, body, err)
		}
	}
}

func TestTheEnvelopeNamesWhatIsWrong(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	const path, kind = "/api/snowflake/v1/gen/", "application/json"
	rows := []struct {
		name, method, kind, body string
		status                   int
		code                     float64
		text                     string
	}{
		{"a wrong method", "GET", "", "", 405, 405, "expected POST"},
		{"a form", "POST", "application/x-www-form-urlencoded", "namespace=1", 415, 415, "application/json"},
		{"no body", "POST", kind, "", 400, 23, "body is empty"},
		{"broken JSON", "POST", kind, `{"namespace":`, 400, 23, "malformed JSON"},
		{"half a character", "POST", kind, `{"namespace":"\ud800"}`, 400, 23, "not Unicode"},
		{"an unknown field", "POST", kind, `{"namespace":1,"n":2}`, 400, 23, "unknown field"},
		{"no namespace", "POST", kind, `{}`, 400, 23, "namespace is missing"},
		{"an empty namespace", "POST", kind, `{"namespace":""}`, 400, 23, "namespace is missing"},
		{"a negative namespace", "POST", kind, `{"namespace":-1}`, 400, 23, "field namespace"},
		{"half a namespace", "POST", kind, `{"namespace":1.5}`, 400, 23, "field namespace"},
		{"no value", "POST", kind, `{"namespace":null}`, 400, 23, "field namespace"},
		{"a list", "POST", kind, `{"namespace":[1]}`, 400, 23, "field namespace"},
		{"namespace 0", "POST", kind, `{"namespace":0}`, 404, 27, "unknown namespace"},
		{"an unknown number", "POST", kind, `{"namespace":77}`, 404, 27, "unknown namespace"},
		{"a number of 64 bits", "POST", kind, `{"namespace":18446744073709551615}`, 404, 27, "unknown namespace"},
		{"an unknown name", "POST", kind, `{"namespace":"moon base"}`, 404, 27, "unknown namespace"},
		{"too much", "POST", kind, `{"namespace":"` + strings.Repeat("x", 17<<20) + `"}`, 413, 413, "body above"},
	}
	for _, row := range rows {
		status, _, got := do(t, row.method, "http://"+r.HTTPAddr()+path, row.kind, row.body)
		message, _ := got["message"].(string)
		data, has := got["data"]
		if status != row.status || got["code"] != row.code || !strings.Contains(message, row.text) || !has || data != nil {
			t.Errorf("%s: got %d %v, want %d %v naming %q", row.name, status, got, row.status, row.code, row.text)
		}
	}
	cluster.Behave(false, false, seq.ErrDatacenterTaken)
	if status, header, got := do(t, "POST", "http://"+r.HTTPAddr()+path, kind, `{"namespace":1}`); status != 503 || got["code"] != 30.0 || header.Get("Retry-After") == "" {
		t.Errorf("a datacenter of another name: got %d %v %v", status, header, got)
	}
}

func TestLeafsPathsAnswerInText(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("leaf-segment-test")
	r := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true})
	base := "http://" + r.HTTPAddr()
	for _, row := range []struct{ query, want string }{{"", "1"}, {"?count=1", "2"}, {"?count=3", "3\n4\n5"}} {
		if got := text(t, base+"/api/segment/get/leaf-segment-test"+row.query); got != row.want {
			t.Errorf("segment %s: got %q, want %q", row.query, got, row.want)
		}
	}
	var last int64
	for i, row := range []string{"/default", "/1", "/orders?count=1", "/orders?count=5000"} {
		lines := strings.Split(text(t, base+"/api/snowflake/get"+row), "\n")
		want := 1
		if i == 3 {
			want = 5000
		}
		if len(lines) != want {
			t.Errorf("%s: got %d lines, want %d", row, len(lines), want)
		}
		last = 0
		for _, line := range lines {
			id, err := strconv.ParseInt(line, 10, 64)
			if err != nil || id <= last {
				t.Fatalf("%s: got %q after %d", row, line, last)
			}
			last = id
		}
	}
	for _, path := range []string{"/api/segment/get/leaf-segment-test", "/api/snowflake/get/default"} {
		for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodPost} {
			if status, allow := statusOf(t, method, base+path); status != http.StatusMethodNotAllowed || allow != "GET" {
				t.Errorf("%s %s: got %d, allowed is %q", method, path, status, allow)
			}
		}
	}
	if got := text(t, base+"/api/segment/get/leaf-segment-test"); got != "6" {
		t.Errorf("after a HEAD the next number is %s, want 6", got)
	}
	if status, _ := statusOf(t, http.MethodHead, base+"/decodeSnowflakeId?snowflakeId=1169786042799259000"); status != http.StatusOK {
		t.Errorf("a HEAD of what takes nothing: got %d", status)
	}
	if status, _, got := do(t, "GET", base+"/api/snowflake/get/%ff", "", ""); status != http.StatusBadRequest || got["code"] != "BAD_ARGUMENT" {
		t.Errorf("a namespace that is no text: got %d %v", status, got)
	}
	status, _, got := do(t, "GET", base+"/decodeSnowflakeId?snowflakeId=1169786042799259000", "", "")
	want := map[string]any{"timestamp": "1567733700834(2019-09-06 01:35:00.834)", "workerId": "39", "sequenceId": "3448"}
	if diff := cmp.Diff(want, got); diff != "" || status != http.StatusOK {
		t.Errorf("decode: got %d, (-want +got)\n%s", status, diff)
	}
}

func TestLeafsStatusShowsAllTagsOfTheCluster(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	r := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true})
	base := "http://" + r.HTTPAddr()
	for i := range 9 {
		cluster.AddTag(fmt.Sprint("tag-", i))
	}
	for i := range 9 {
		text(t, fmt.Sprintf("%s/api/segment/get/tag-%d?count=7", base, i))
	}
	_, _, cache := do(t, "GET", base+"/cache", "", "")
	_, _, db := do(t, "GET", base+"/db", "", "")
	inUse, _ := cache["tags"].([]any)
	known, _ := db["tags"].([]any)
	if len(inUse) != 9 || len(known) != 9 {
		t.Fatalf("got %d tags in use and %d known, want 9", len(inUse), len(known))
	}
	section := float64(cluster.Mapping.SectionOfName("tag-4"))
	limits := map[string]any{
		"tag": "tag-4", "section": section, "min_step": 1000.0, "min_step_str": "1000",
		"max_step": 1e6, "max_step_str": "1000000", "start": 1.0, "start_str": "1",
	}
	if diff := cmp.Diff(limits, known[4]); diff != "" {
		t.Errorf("db: (-want +got)\n%s", diff)
	}
	for k, v := range map[string]any{
		"state": "owned", "leased": true, "current": 7.0, "current_str": "7", "max": 1000.0, "max_str": "1000", "step": 1000.0, "step_str": "1000",
		"loading": false, "buffers": []any{map[string]any{"first": 1.0, "first_str": "1", "last": 1000.0, "last_str": "1000", "left": 993.0, "left_str": "993"}},
	} {
		limits[k] = v
	}
	if diff := cmp.Diff(limits, inUse[4]); diff != "" {
		t.Errorf("cache: (-want +got)\n%s", diff)
	}
}

func TestSnowflakesAndSegmentsAnswerInJSON(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("invoice:eu")
	cluster.AddNumbers("bill")
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr()
	if status, _, got := do(t, "POST", base+"/v1/snowflake/generate", "application/json", `{"alias":1}`); status != http.StatusOK {
		t.Fatalf("the ID that binds the datacenter's name: got %d %v", status, got)
	}
	year := time.Now().UTC().Format("2006")
	type object = map[string]any
	vector := object{
		"id": "108152875544481803", "text": "108152875544481803", "layout": "regional", "unix_ms": 1647935744532.0, "tick": 51571309826.0,
		"datacenter_id": 1.0, "worker_id": 1.0, "sequence": 11.0, "datacenter": "cn", "has_datacenter": true, "origin": "",
	}
	// 1023510546613293056 has these parts in twitter's layout; its base58 is a vector.
	l, err := snowflake.Preset("twitter")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Decode(1023510546613293056)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name, method, path, body string
		whole                    bool // all of the answer is in want
		want                     object
	}{
		{"decode by a namespace", "GET", "/v1/snowflake/decode?number=108152875544481803&namespace=1", "", true, vector},
		{"decode by an alias", "GET", "/v1/snowflake/decode?number=108152875544481803&alias=1", "", true, vector},
		{"decode of a text", "GET", "/v1/snowflake/decode?text=108152875544481803&alias=1", "", true, vector},
		{"decode by a preset", "GET", "/v1/snowflake/decode?number=108152875544481803&layout=regional", "", true, vector},
		{"decode of hex", "GET", "/v1/snowflake/decode?text=1803c77a044100b&encoding=hex&layout=regional", "", true, vector},
		{"decode by a text", "GET", "/v1/snowflake/decode?number=362637573840961538&layout=time:39,sequence:8,machine:16;unit=10ms;epoch=1409529600000", "", false,
			object{"tick": 21614883771.0, "worker_id": 2.0, "sequence": 0.0, "has_datacenter": false}},
		{"compose by an alias", "POST", "/v1/snowflake/compose",
			`{"alias":1,"unix_ms":1647935744532,"datacenter_id":1,"worker_id":"1","sequence":11}`, true, vector},
		{"compose by milliseconds", "POST", "/v1/snowflake/compose",
			`{"layout":"regional","unix_ms":"1647935744532","datacenter_id":1,"worker_id":1,"sequence":11}`, true, vector},
		{"compose by ticks", "POST", "/v1/snowflake/compose",
			`{"layout":"twitter","tick":367597485448,"datacenter_id":11,"worker_id":26}`, false, object{"id": "1541815603606036480"}},
		{"compose into a text form", "POST", "/v1/snowflake/compose",
			fmt.Sprintf(`{"layout":"twitter","tick":%d,"datacenter_id":%d,"worker_id":%d,"sequence":%d,"encoding":"base58"}`,
				p.Tick, p.Datacenter, p.Worker, p.Sequence), false, object{"text": "3nNeLuv1t79"}},
		{"a segment", "POST", "/v1/segment/take", `{"tag":"invoice:eu"}`, true,
			object{"first": 1.0, "last": 1.0, "max": 1000.0}},
		{"a range of a segment", "POST", "/v1/segment/take", `{"tag":"invoice:eu","count":"50"}`, true,
			object{"first": 2.0, "last": 51.0, "max": 1000.0}},
		{"a business number", "POST", "/v1/number/next", `{"tag":"bill"}`, true,
			object{"numbers": []any{"bill-" + year + "-000001"}, "period": year, "first": 1.0, "last": 1.0}},
		{"the next business number", "GET", "/v1/number/show?tag=bill", ``, false,
			object{"next": "bill-" + year + "-000002", "used_up": false, "left": 999998.0}},
	}
	for _, row := range rows {
		status, _, got := do(t, row.method, base+strings.ReplaceAll(row.path, ";", "%3B"), "application/json", row.body)
		if status != http.StatusOK {
			t.Errorf("%s: got status %d %v, want 200", row.name, status, got)
			continue
		}
		if !row.whole {
			for k := range got {
				if _, ok := row.want[k]; !ok {
					delete(got, k)
				}
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", row.name, diff)
		}
	}
}

func TestGeneratedIDsComeInEveryForm(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	url := "http://" + r.HTTPAddr() + "/v1/snowflake/generate"
	status, _, got := do(t, "POST", url, "application/json", `{"namespace":"regional-1","count":3,"agent":"mailer","encoding":"base62"}`)
	ids, _ := got["ids"].([]any)
	texts, _ := got["texts"].([]any)
	if status != http.StatusOK || len(ids) != 3 || len(texts) != 3 {
		t.Fatalf("got %d %v", status, got)
	}
	for i := range ids {
		id, err := snowflake.Base62.Parse(fmt.Sprint(texts[i]))
		if err != nil || fmt.Sprint(id) != ids[i] {
			t.Errorf("%d: got %v, %v: %v", i, ids[i], texts[i], err)
		}
	}
	if got["namespace"] != "regional-1" || got["layout"] != "regional" || got["datacenter_id"] != 1.0 || got["worker_id"] == nil {
		t.Errorf("got %v", got)
	}
	if n := cluster.IDsOf("mailer"); n != 3 {
		t.Errorf("the agent got %d, want 3", n)
	}
	_, _, one := do(t, "POST", url, "application/json", `{}`)
	if ids, _ := one["ids"].([]any); len(ids) != 1 || one["namespace"] != "default" || len(one["texts"].([]any)) != 0 {
		t.Errorf("one of the default namespace: got %v", one)
	}
	_, _, many := do(t, "POST", url, "application/json", `{"alias":1,"count":5000,"as_runs":true}`)
	var n uint64
	for _, run := range many["runs"].([]any) {
		first, err1 := strconv.ParseUint(fmt.Sprint(run.(map[string]any)["first"]), 10, 64)
		last, err2 := strconv.ParseUint(fmt.Sprint(run.(map[string]any)["last"]), 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("got a run %v", run)
		}
		n += (last-first)/uint64(run.(map[string]any)["stride"].(float64)) + 1
	}
	if n != 5000 || len(many["ids"].([]any)) != 0 {
		t.Errorf("as runs: got %d IDs in %v", n, many)
	}
	_, _, all := do(t, "GET", "http://"+r.HTTPAddr()+"/v1/snowflake/layouts", "", "")
	_, _, baidu := do(t, "GET", "http://"+r.HTTPAddr()+"/v1/snowflake/layouts?layout=baidu", "", "")
	layouts, _ := baidu["layouts"].([]any)
	if list, _ := all["layouts"].([]any); len(list) != len(snowflake.PresetNames()) || len(layouts) != 1 {
		t.Fatalf("got %d layouts, and %d called baidu", len(list), len(layouts))
	}
	want := map[string]any{
		"name": "baidu", "epoch_unix_ms": 1463673600000.0, "unit_ms": 1000.0, "exhausted_unix_ms": 1732109056000.0, "exhausted": true,
		"max_worker": 4194303.0, "max_sequence": 8191.0, "overflow": "borrow", "has_datacenter": false, "max_datacenter": 0.0,
	}
	for k, v := range want {
		if m := layouts[0].(map[string]any); m[k] != v {
			t.Errorf("baidu: %s is %v, want %v", k, m[k], v)
		}
	}
}

func TestHTTPNamesWhatIsWrongWithIDs(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("order")
	r := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true})
	base := "http://" + r.HTTPAddr()
	const kind, gen, dec, com, take = "application/json", "/v1/snowflake/generate", "/v1/snowflake/decode", "/v1/snowflake/compose", "/v1/segment/take"
	rows := []struct {
		name, method, path, kind, body string
		status                         int
		code, text                     string
	}{
		{"generate by GET", "GET", gen, "", "", 405, "METHOD_NOT_ALLOWED", "expected POST"},
		{"decode by POST", "POST", dec, kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"compose by GET", "GET", com, "", "", 405, "METHOD_NOT_ALLOWED", "expected POST"},
		{"layouts by DELETE", "DELETE", "/v1/snowflake/layouts", "", "", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"take by PUT", "PUT", take, kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected POST"},
		{"Leaf's segment by POST", "POST", "/api/segment/get/order", kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"Leaf's snowflake by POST", "POST", "/api/snowflake/get/default", kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"Leaf's decode by POST", "POST", "/decodeSnowflakeId", kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"a form for generate", "POST", gen, "application/x-www-form-urlencoded", "count=1", 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},
		{"text for compose", "POST", com, "text/plain", "{}", 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},
		{"no type for take", "POST", take, "", "{}", 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},

		{"broken JSON", "POST", gen, kind, `{"count":`, 400, "BAD_ARGUMENT", "malformed JSON"},
		{"an unknown field", "POST", gen, kind, `{"cuont":1}`, 400, "BAD_ARGUMENT", "cuont"},
		{"a count of 0", "POST", gen, kind, `{"count":0}`, 400, "BAD_COUNT", "count is 0"},
		{"a large count", "POST", gen, kind, `{"count":100001}`, 400, "BAD_COUNT", "count is 100001"},
		{"a count past 32 bits", "POST", gen, kind, `{"count":4294967297}`, 400, "BAD_COUNT", "count is 4294967297"},
		{"a negative count", "POST", gen, kind, `{"count":-1}`, 400, "BAD_ARGUMENT", "field count"},
		{"an unknown namespace", "POST", gen, kind, `{"namespace":"moon"}`, 404, "UNKNOWN_NAMESPACE", "moon"},
		{"an unknown number", "POST", gen, kind, `{"namespace":"77"}`, 404, "UNKNOWN_NAMESPACE", "77"},
		{"an unknown alias", "POST", gen, kind, `{"alias":77}`, 404, "UNKNOWN_NAMESPACE", "77"},
		{"an alias past 32 bits", "POST", gen, kind, `{"alias":4294967296}`, 400, "BAD_ARGUMENT", "field alias"},
		{"a number for a namespace", "POST", gen, kind, `{"namespace":1}`, 400, "BAD_ARGUMENT", "field namespace"},
		{"a namespace that is no text", "POST", gen, kind, "{\"namespace\":\"\xff\"}", 400, "BAD_ARGUMENT", "not Unicode"},
		{"a namespace of the wrong kind", "POST", gen, kind, `{"namespace":{}}`, 400, "BAD_ARGUMENT", "field namespace"},
		{"no agent's name", "POST", gen, kind, `{"agent":"7 of 9"}`, 400, "BAD_ARGUMENT", "agent"},
		{"an unknown encoding", "POST", gen, kind, `{"encoding":"base64"}`, 400, "BAD_ARGUMENT", "base64"},

		{"decode of nothing", "GET", dec, "", "", 400, "BAD_ARGUMENT", "number or text is missing"},
		{"decode of an empty text", "GET", dec + "?text=", "", "", 400, "BAD_ID", "length"},
		{"decode of a negative ID", "GET", dec + "?number=-5", "", "", 400, "BAD_ID", "sign"},
		{"decode past 63 bits", "GET", dec + "?text=9223372036854775808", "", "", 400, "BAD_ID", "63 bits"},
		{"decode of bits above the layout", "GET", dec + "?number=9223372036854775807&layout=time:30,worker:8,sequence:8;unit=1s;epoch=0", "", "", 400, "BAD_ID", "range"},
		{"decode of a word", "GET", dec + "?text=abc", "", "", 400, "BAD_ID", "alphabet"},
		{"decode of a wrong alphabet", "GET", dec + "?text=0OIl&encoding=base58", "", "", 400, "BAD_ID", "alphabet"},
		{"decode of a long text", "GET", dec + "?text=11111111111111111111111&encoding=base58", "", "", 400, "BAD_ID", "length"},
		{"decode by an unknown encoding", "GET", dec + "?number=1&encoding=base64", "", "", 400, "BAD_ARGUMENT", "base64"},
		{"compose by a layout of 64 bits", "POST", com, kind, `{"layout":"time:42,worker:10,sequence:12;unit=1ms;epoch=0","tick":1}`, 400, "BAD_LAYOUT", "64 bits"},
		{"decode by an unknown preset", "GET", dec + "?number=1&layout=moon", "", "", 400, "BAD_LAYOUT", "layout"},
		{"decode by an unknown namespace", "GET", dec + "?number=1&namespace=moon", "", "", 404, "UNKNOWN_NAMESPACE", "moon"},
		{"decode of two", "GET", dec + "?number=1&number=2", "", "", 400, "BAD_ARGUMENT", "more than once"},
		{"decode with a typo", "GET", dec + "?number=1&layuot=leaf", "", "", 400, "BAD_ARGUMENT", "layuot"},
		{"decode of what is no text", "GET", dec + "?number=%ff", "", "", 400, "BAD_ARGUMENT", "UTF-8"},
		{"a malformed query", "GET", dec + "?number=%zz", "", "", 400, "BAD_ARGUMENT", "malformed query"},
		{"an unknown layout", "GET", "/v1/snowflake/layouts?layout=moon", "", "", 400, "BAD_LAYOUT", "layout"},

		{"compose without a time", "POST", com, kind, `{"layout":"leaf"}`, 400, "BAD_ARGUMENT", "unix_ms or tick is missing"},
		{"compose of two times", "POST", com, kind, `{"tick":1,"unix_ms":1}`, 400, "BAD_ARGUMENT", "expected one"},
		{"compose of a bad time", "POST", com, kind, `{"unix_ms":"yesterday"}`, 400, "BAD_ARGUMENT", "field unix_ms"},
		{"compose past the layout", "POST", com, kind, `{"layout":"baidu","unix_ms":1732109056000}`, 400, "TIME_EXHAUSTED", "exhausted"},
		{"compose past all time", "POST", com, kind, `{"layout":"baidu","unix_ms":"9223372036854775807"}`, 400, "TIME_EXHAUSTED", "exhausted"},
		{"compose past 64 bits", "POST", com, kind, `{"layout":"baidu","unix_ms":"9223372036854775808"}`, 400, "BAD_ARGUMENT", "field unix_ms"},
		{"compose before the epoch", "POST", com, kind, `{"layout":"baidu","unix_ms":1}`, 400, "BAD_ID", "epoch"},
		{"compose of a large worker", "POST", com, kind, `{"layout":"twitter","tick":1,"worker_id":32}`, 400, "BAD_ID", "range"},
		{"compose of a negative worker", "POST", com, kind, `{"layout":"twitter","tick":1,"worker_id":-1}`, 400, "BAD_ARGUMENT", "field worker_id"},
		{"compose into an unknown encoding", "POST", com, kind, `{"tick":1,"encoding":"rot13"}`, 400, "BAD_ARGUMENT", "rot13"},

		{"no tag", "POST", take, kind, `{}`, 400, "BAD_ARGUMENT", "tag of 0 bytes"},
		{"an unknown tag", "POST", take, kind, `{"tag":"moon"}`, 404, "UNKNOWN_TAG", "moon"},
		{"no tag's name", "POST", take, kind, `{"tag":"a b"}`, 400, "BAD_ARGUMENT", "tag"},
		{"a number for a tag", "POST", take, kind, `{"tag":1}`, 400, "BAD_ARGUMENT", "field tag"},
		{"none of a tag", "POST", take, kind, `{"tag":"order","count":0}`, 400, "BAD_COUNT", "count is 0"},
		{"too many of a tag", "POST", take, kind, `{"tag":"order","count":1048577}`, 400, "BAD_COUNT", "count is 1048577"},

		{"Leaf: an unknown tag", "GET", "/api/segment/get/moon", "", "", 404, "UNKNOWN_TAG", "moon"},
		{"Leaf: no tag's name", "GET", "/api/segment/get/a%20b", "", "", 400, "BAD_ARGUMENT", "tag"},
		{"Leaf: no tag", "GET", "/api/segment/get/", "", "", 404, "NOT_FOUND", "/api/segment/get/"},
		{"Leaf: none of a tag", "GET", "/api/segment/get/order?count=0", "", "", 400, "BAD_COUNT", "count is 0"},
		{"Leaf: a word for a count", "GET", "/api/segment/get/order?count=many", "", "", 400, "BAD_ARGUMENT", "many"},
		{"Leaf: a negative count", "GET", "/api/segment/get/order?count=-1", "", "", 400, "BAD_ARGUMENT", "-1"},
		{"Leaf: an unknown parameter", "GET", "/api/segment/get/order?n=1", "", "", 400, "BAD_ARGUMENT", `"n"`},
		{"Leaf: an unknown key", "GET", "/api/snowflake/get/moon", "", "", 404, "UNKNOWN_NAMESPACE", "moon"},
		{"Leaf: a key that is no text", "GET", "/api/snowflake/get/%ff", "", "", 400, "BAD_ARGUMENT", "not UTF-8"},
		{"Leaf: too many IDs", "GET", "/api/snowflake/get/default?count=100001", "", "", 400, "BAD_COUNT", "count is 100001"},
		{"Leaf: decode of nothing", "GET", "/decodeSnowflakeId", "", "", 400, "BAD_ARGUMENT", "snowflakeId is missing"},
		{"Leaf: decode of a negative ID", "GET", "/decodeSnowflakeId?snowflakeId=-1", "", "", 400, "BAD_ID", "sign"},
		{"Leaf: decode of a word", "GET", "/decodeSnowflakeId?snowflakeId=x", "", "", 400, "BAD_ID", "alphabet"},
		{"Leaf: decode past 63 bits", "GET", "/decodeSnowflakeId?snowflakeId=9223372036854775808", "", "", 400, "BAD_ID", "63 bits"},
		{"a parameter for the status", "GET", "/cache?tag=order", "", "", 400, "BAD_ARGUMENT", "tag"},
		{"a parameter for the tags", "GET", "/db?tag=order", "", "", 400, "BAD_ARGUMENT", "tag"},
	}
	for _, row := range rows {
		status, header, got := do(t, row.method, base+strings.ReplaceAll(row.path, ";", "%3B"), row.kind, row.body)
		message, _ := got["message"].(string)
		if status != row.status || got["code"] != row.code || !strings.Contains(message, row.text) {
			t.Errorf("%s: got %d %v, want %d %s naming %q", row.name, status, got, row.status, row.code, row.text)
		}
		if (status == 405) != (header.Get("Allow") != "") {
			t.Errorf("%s: Allow is %q", row.name, header.Get("Allow"))
		}
	}
	// Nothing else was disturbed: both nodes still answer, without a pause.
	for range 4 {
		if status, _, got := do(t, "POST", base+take, kind, `{"tag":"order"}`); status != http.StatusOK {
			t.Errorf("after all that: got %d %v", status, got)
		}
	}
	for _, n := range cluster.Nodes {
		n.Bare()
	}
	if status, _, got := do(t, "POST", base+gen, kind, `{}`); status != http.StatusNotImplemented || got["code"] != "UNIMPLEMENTED" {
		t.Errorf("from nodes that serve sequences only: got %d %v", status, got)
	}
}
