package router_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// do makes one request and gives status, headers and the JSON object of the answer.
func do(t *testing.T, method, url, contentType, body string) (int, http.Header, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s %s: answer %q: %v", method, url, text, err)
	}
	router.CheckAnswer(t, method, req.URL.Path, resp.StatusCode, text)
	return resp.StatusCode, resp.Header, out
}

func TestHTTPSpeaksTheMessagesOfTheCallsInJSON(t *testing.T) {
	begun := time.Now().Unix() - 1
	cluster := clienttest.Start(t, 2)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr()
	type object = map[string]any
	type list = []any
	rows := []struct {
		name, method, path, body string
		want                     object
	}{
		{"next by a uid in a string", "POST", "/v1/next", `{"uid":"18446744073709551615"}`, object{"first": 1.0, "last": 1.0, "unordered": false, "replayed": false}},
		{"next of a range", "POST", "/v1/next", `{"uid":7,"count":5}`, object{"first": 1.0, "last": 5.0, "unordered": false, "replayed": false}},
		{"a field that is null", "POST", "/v1/next", `{"uid":6,"key":null}`, object{"first": 1.0, "last": 1.0, "unordered": false, "replayed": false}},
		{"current", "GET", "/v1/current?uids=7", "", object{
			"values": list{5.0}, "upper_bound": list{false}, "last_taken_unix": list{true}, "errors": list{}}},
		{"current of many", "GET", "/v1/current?uids=7&uids=6&keys=room-9&space=user", "", object{
			"values": list{5.0, 1.0, 0.0}, "upper_bound": list{false, false, false}, "last_taken_unix": list{true, true, false}, "errors": list{}}},
		{"current of more than a URL holds", "POST", "/v1/current/batch", `{"uids":[7,"6"],"keys":["room-9"]}`, object{
			"values": list{5.0, 1.0, 0.0}, "upper_bound": list{false, false, false}, "last_taken_unix": list{true, true, false}, "errors": list{}}},
		{"raise of many", "POST", "/v1/raise/batch", `{"uids":[17,"18"],"keys":["room-7"],"at_least":[5,"20",7],"max_jump":10}`, object{
			"values": list{5.0, 0.0, 7.0}, "errors": list{
				object{"index": 1.0, "code": "FORBIDDEN", "message": "raise user/18: raise uid 18 to 20: not allowed: its number is 0, and this caller may raise it by at most 10 (max_jump, or max_raise of the grant)", "owner_addr": ""}}}},
		{"raise", "POST", "/v1/raise", `{"uid":7,"at_least":"9007199254740990","force":true}`, object{"value": 9007199254740990.0}},
		{"batch", "POST", "/v1/batch", `{"uids":[7,"8"],"counts":[2,2]}`, object{
			"first": list{0.0, 1.0}, "last": list{0.0, 2.0}, "unordered": false, "replayed": list{}, "errors": list{
				object{"index": 0.0, "code": "OVERFLOW", "message": "next user/7: uid 7 stands at 9007199254740990: sequence would pass 2^53-1", "owner_addr": ""}}}},
		{"batch of one each", "POST", "/v1/batch", `{"uids":[9],"keys":["room-8"]}`, object{
			"first": list{1.0, 1.0}, "last": list{}, "unordered": false, "replayed": list{}, "errors": list{}}},
		{"live", "GET", "/livez", "", object{"status": "ok"}},
		{"ready", "GET", "/readyz", "", object{"status": "ok", "routes_version": 1.0}},
	}
	for _, row := range rows {
		code, _, got := do(t, row.method, base+row.path, "application/json; charset=utf-8", row.body)
		if code != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", row.name, code)
		}
		times, _ := got["last_taken_unix"].([]any)
		for i, at := range times { // true for a time of this test
			seconds, _ := at.(float64)
			times[i] = seconds >= float64(begun) && seconds <= float64(time.Now().Unix()+1)
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", row.name, diff)
		}
	}
	_, _, byKey := do(t, "POST", base+"/v1/next", "application/json", `{"key":"room-1","space":"user"}`)
	_, _, byUID := do(t, "GET", fmt.Sprint(base, "/v1/current?uids=", uint64(seq.HashKey("room-1"))), "", "")
	if diff := cmp.Diff(list{1.0}, byUID["values"]); diff != "" || byKey["first"] != 1.0 {
		t.Errorf("a string key: got %v, then %v", byKey, byUID)
	}
}

func TestHTTPNamesWhatIsWrong(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr()
	const kind = "application/json"
	many := `{"uids":[1` + strings.Repeat(",1", seq.MaxBatch) + `]}`
	rows := []struct {
		name, method, path, kind, body string
		status                         int
		code, text                     string
	}{
		{"an unknown path", "GET", "/v2/next", "", "", 404, "NOT_FOUND", "/v2/next"},
		{"a wrong method", "GET", "/v1/next", "", "", 405, "METHOD_NOT_ALLOWED", "expected POST"},
		{"a wrong method to read", "POST", "/v1/current", kind, "{}", 405, "METHOD_NOT_ALLOWED", "expected GET"},
		{"a form", "POST", "/v1/next", "application/x-www-form-urlencoded", "uid=1", 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},
		{"no content type", "POST", "/v1/next", "", `{"uid":1}`, 415, "UNSUPPORTED_MEDIA_TYPE", "application/json"},
		{"no body", "POST", "/v1/next", kind, "", 400, "BAD_ARGUMENT", "body is empty"},
		{"a request id with half a character", "POST", "/v1/next", kind, `{"uid":1,"request_id":"m-\ud83d"}`, 400, "BAD_ARGUMENT", `\ud83d is half a character`},
		{"a key with half a character", "POST", "/v1/next", kind, `{"key":"r-\ud83e"}`, 400, "BAD_ARGUMENT", "not Unicode"},
		{"a key of bytes that are no text", "POST", "/v1/next", kind, "{\"key\":\"r-\xff\"}", 400, "BAD_ARGUMENT", "byte 10 is not UTF-8"},
		{"such keys in a batch", "POST", "/v1/batch", kind, `{"keys":["a","\udc00"]}`, 400, "BAD_ARGUMENT", "not Unicode"},
		{"such keys to read", "POST", "/v1/current/batch", kind, `{"keys":["\udc00"]}`, 400, "BAD_ARGUMENT", "not Unicode"},
		{"such a name of a field", "POST", "/v1/raise", kind, "{\"uid\":1,\"at_least\":1,\"\xc3\":1}", 400, "BAD_ARGUMENT", "not UTF-8"},
		{"such keys in a query", "GET", "/v1/current?keys=%ff", "", "", 400, "BAD_ARGUMENT", "not UTF-8"},
		{"another encoding", "POST", "/v1/next", kind + "; charset=iso-8859-1", `{"uid":1}`, 415, "UNSUPPORTED_MEDIA_TYPE", "in UTF-8"},
		{"options", "OPTIONS", "/v1/next", "", "", 405, "METHOD_NOT_ALLOWED", "expected POST"},
		{"broken JSON", "POST", "/v1/next", kind, `{"uid":1`, 400, "BAD_ARGUMENT", "malformed JSON"},
		{"two values", "POST", "/v1/next", kind, `{"uid":1}{"uid":2}`, 400, "BAD_ARGUMENT", "more than one value"},
		{"an array", "POST", "/v1/next", kind, `[1]`, 400, "BAD_ARGUMENT", "malformed JSON"},
		{"an unknown field", "POST", "/v1/next", kind, `{"uid":1,"cuont":3}`, 400, "BAD_ARGUMENT", "cuont"},
		{"no id", "POST", "/v1/next", kind, `{}`, 400, "BAD_ARGUMENT", "uid"},
		{"two ids", "POST", "/v1/next", kind, `{"uid":1,"key":"a"}`, 400, "BAD_ARGUMENT", "both"},
		{"a negative uid", "POST", "/v1/next", kind, `{"uid":-1}`, 400, "BAD_ARGUMENT", "field uid"},
		{"a fraction", "POST", "/v1/next", kind, `{"uid":1,"count":1.5}`, 400, "BAD_ARGUMENT", "field count"},
		{"a uid past 64 bits", "POST", "/v1/next", kind, `{"uid":"18446744073709551616"}`, 400, "BAD_ARGUMENT", "field uid"},
		{"an object for a uid", "POST", "/v1/next", kind, `{"uid":{}}`, 400, "BAD_ARGUMENT", "field uid"},
		{"a number for a space", "POST", "/v1/next", kind, `{"uid":1,"space":7}`, 400, "BAD_ARGUMENT", "field space"},
		{"an empty key", "POST", "/v1/next", kind, `{"key":""}`, 400, "BAD_ARGUMENT", "key"},
		{"a count of 0", "POST", "/v1/next", kind, `{"uid":1,"count":0}`, 400, "BAD_COUNT", "count"},
		{"a large count", "POST", "/v1/next", kind, `{"uid":1,"count":4294967297}`, 400, "BAD_COUNT", "count"},
		{"an unknown space", "POST", "/v1/next", kind, `{"uid":1,"space":"moon"}`, 404, "UNKNOWN_SPACE", "moon"},
		{"no key in a batch", "POST", "/v1/batch", kind, `{}`, 400, "BAD_BATCH", "0 keys"},
		{"too many keys", "POST", "/v1/batch", kind, many, 400, "BAD_BATCH", "10001 keys"},
		{"counts that do not match", "POST", "/v1/batch", kind, `{"uids":[1],"counts":[1,2]}`, 400, "BAD_BATCH", "counts"},
		{"a bad count in a batch", "POST", "/v1/batch", kind, `{"uids":[1,2],"counts":[1,18446744073709551615]}`, 400, "BAD_COUNT", "counts[1]"},
		{"an unknown space for a batch", "POST", "/v1/batch", kind, `{"uids":[1],"space":"moon"}`, 404, "UNKNOWN_SPACE", "moon"},
		{"an unknown space for many", "POST", "/v1/batch", kind, `{"uids":[1,2],"space":"moon"}`, 404, "UNKNOWN_SPACE", "moon"},
		{"a number for the keys", "POST", "/v1/batch", kind, `{"uids":1}`, 400, "BAD_ARGUMENT", "field uids"},
		{"a number among the keys", "POST", "/v1/batch", kind, `{"keys":["a",1]}`, 400, "BAD_ARGUMENT", "field keys[1]"},
		{"a fraction among the uids", "POST", "/v1/batch", kind, `{"uids":[1,2.5]}`, 400, "BAD_ARGUMENT", "field uids[1]"},
		{"no floor", "POST", "/v1/raise", kind, `{"uid":1}`, 400, "BAD_ARGUMENT", "at_least"},
		{"no floors", "POST", "/v1/raise/batch", kind, `{"uids":[1]}`, 400, "BAD_ARGUMENT", "at_least is missing"},
		{"a floor for one of two", "POST", "/v1/raise/batch", kind, `{"uids":[1],"keys":["a"],"at_least":[1]}`, 400, "BAD_BATCH", "1 entries for 2 keys"},
		{"no key to raise", "POST", "/v1/raise/batch", kind, `{"at_least":[]}`, 400, "BAD_BATCH", "0 keys"},
		{"a key to raise that is none", "POST", "/v1/raise/batch", kind, `{"keys":[""],"at_least":[1]}`, 400, "BAD_ARGUMENT", "0 bytes"},
		{"a space that is none", "POST", "/v1/raise/batch", kind, `{"space":"nowhere","uids":[1],"at_least":[1]}`, 404, "UNKNOWN_SPACE", "nowhere"},
		{"force of many", "POST", "/v1/raise/batch", kind, `{"uids":[1],"at_least":[1],"force":true}`, 400, "BAD_ARGUMENT", "force"},
		{"a floor too high", "POST", "/v1/raise", kind, `{"uid":1,"at_least":9007199254740992}`, 400, "OVERFLOW", "at_least"},
		{"a floor too far up", "POST", "/v1/raise", kind, `{"uid":1,"at_least":9007199254740990}`, 400, "RAISE_TOO_FAR", "4294967296"},
		{"a word for force", "POST", "/v1/raise", kind, `{"uid":1,"at_least":1,"force":"true"}`, 400, "BAD_ARGUMENT", "field force"},
		{"a floor that is null", "POST", "/v1/raise", kind, `{"uid":1,"at_least":null}`, 400, "BAD_ARGUMENT", "at_least is missing"},
		{"current of nobody", "GET", "/v1/current", "", "", 400, "BAD_BATCH", "0 keys"},
		{"current of two spaces", "GET", "/v1/current?uids=1&space=a&space=b", "", "", 400, "BAD_ARGUMENT", "more than once"},
		{"current of a word", "GET", "/v1/current?uids=x", "", "", 400, "BAD_ARGUMENT", "field uids[0]"},
		{"current in an unknown space", "GET", "/v1/current?uids=1&space=moon", "", "", 404, "UNKNOWN_SPACE", "moon"},
		{"an unknown parameter", "GET", "/v1/current?uids=1&user=2", "", "", 400, "BAD_ARGUMENT", "user"},
		{"a table held by nobody", "POST", "/v1/next", kind, `{"uid":1,"route_version":1}`, 400, "BAD_ARGUMENT", "route_version"},
	}
	for _, row := range rows {
		status, header, got := do(t, row.method, base+row.path, row.kind, row.body)
		message, _ := got["message"].(string)
		if status != row.status || got["code"] != row.code || !strings.Contains(message, row.text) {
			t.Errorf("%s: got %d %v, want %d %s naming %q", row.name, status, got, row.status, row.code, row.text)
		}
		if (status == 405) != (header.Get("Allow") != "") {
			t.Errorf("%s: Allow is %q", row.name, header.Get("Allow"))
		}
	}
}

func TestHTTPSaysThatACallMayBeRetried(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs(), Timeout: 1, AttemptTimeout: patience})
	status, header, got := do(t, "GET", "http://"+r.HTTPAddr()+"/readyz", "", "")
	for status != http.StatusOK { // the first table comes soon
		if status != http.StatusServiceUnavailable || got["code"] != "NO_ROUTE" || header.Get("Retry-After") == "" {
			t.Fatalf("before the first table: got %d %v", status, got)
		}
		status, header, got = do(t, "GET", "http://"+r.HTTPAddr()+"/readyz", "", "")
	}
	cluster.Behave(false, false, seq.ErrNoQuorum)
	status, header, got = do(t, "POST", "http://"+r.HTTPAddr()+"/v1/next", "application/json", `{"uid":1}`)
	if status != http.StatusServiceUnavailable || got["code"] != "NO_QUORUM" || header.Get("Retry-After") == "" {
		t.Errorf("without a quorum: got %d %v", status, got)
	}
}
