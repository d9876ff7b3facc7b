package secure

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// matrix says once more, by hand, who may call what: n nobody, s store, a alloc, t router,
// c caller, r reader, o operator; d and b store and alloc of another Set, x anybody of a cluster
// that is no Set, under the same CA.
var matrix = map[string]string{
	"seqsvr.v1.Sequence/Next": "tco", "seqsvr.v1.Sequence/BatchNext": "tco", "seqsvr.v1.Sequence/Current": "tcro", "seqsvr.v1.Sequence/Lookup": "tcro",
	"seqsvr.v1.Sequence/Open": "tco", "seqsvr.v1.Sequence/Done": "tco", "seqsvr.v1.Sequence/Mark": "tcro", "seqsvr.v1.Sequence/Watch": "tcro",
	"seqsvr.v1.Sequence/Raise": "tco", "seqsvr.v1.Sequence/BatchRaise": "tco", "seqsvr.v1.Sequence/Stream": "tcro", "seqsvr.v1.Sequence/Routes": "tcro",

	"seqsvr.v1.Snowflake/Generate": "tco", "seqsvr.v1.Snowflake/Delegate": "tco", "seqsvr.v1.Snowflake/GiveBack": "tco", "seqsvr.v1.Snowflake/Info": "tco",
	"seqsvr.v1.Snowflake/Decode": "tcro", "seqsvr.v1.Snowflake/Compose": "tcro", "seqsvr.v1.Snowflake/Layouts": "tcro",
	"seqsvr.v1.Snowflake/Namespaces": "tcro", "seqsvr.v1.Snowflake/Workers": "tcro",
	"seqsvr.v1.Snowflake/PutNamespace": "o", "seqsvr.v1.Snowflake/RetireNamespace": "o",

	"seqsvr.v1.Segment/Take": "tco", "seqsvr.v1.Segment/Status": "tcro", "seqsvr.v1.Segment/List": "tcro",
	"seqsvr.v1.Segment/NextNumbers": "tco", "seqsvr.v1.Segment/ShowNumber": "tcro",
	"seqsvr.v1.Segment/Put": "o", "seqsvr.v1.Segment/Retire": "o",

	"seqsvr.v1.Store/Describe": "saro", "seqsvr.v1.Store/Bind": "ao", "seqsvr.v1.Store/Vouch": "ao", "seqsvr.v1.Store/Read": "ao",
	"seqsvr.v1.Store/Prepare": "ao", "seqsvr.v1.Store/Step": "ao", "seqsvr.v1.Store/Stream": "ao", "seqsvr.v1.Store/Renew": "ao", "seqsvr.v1.Store/Release": "ao",
	"seqsvr.v1.Store/Adopt": "ao", "seqsvr.v1.Store/Extend": "ao", "seqsvr.v1.Store/Require": "ao", "seqsvr.v1.Store/Dump": "o", "seqsvr.v1.Store/Fill": "o", "seqsvr.v1.Store/WindowsOver": "o",

	"seqsvr.v1.Peer/Offer": "a", "seqsvr.v1.Peer/Take": "a", "seqsvr.v1.Peer/Look": "a", "seqsvr.v1.Peer/Refresh": "a", "seqsvr.v1.Peer/Ping": "a", "seqsvr.v1.Peer/Hears": "a",

	"seqsvr.v1.Admin/Status": "tro", "seqsvr.v1.Admin/Leases": "tro", "seqsvr.v1.Admin/Events": "tro",
	"seqsvr.v1.Admin/Drain": "o", "seqsvr.v1.Admin/Move": "o", "seqsvr.v1.Admin/Rebalance": "o", "seqsvr.v1.Admin/Rehash": "o", "seqsvr.v1.Admin/AddSpace": "o",
	"seqsvr.v1.Admin/Counters": "o", "seqsvr.v1.Admin/RaiseSection": "o",

	"seqsvr.v1.Router/Status": "tro",

	"seqsvr.v1.Sets/Map": "abtcro", "seqsvr.v1.Sets/Allot": "abo", "seqsvr.v1.Sets/Record": "tro", "seqsvr.v1.Sets/ChangeMap": "o", "seqsvr.v1.Sets/Join": "o", "seqsvr.v1.Sets/Keys": "o",
	"seqsvr.v1.Sets/Step": "o", "seqsvr.v1.Sets/Stop": "o", "seqsvr.v1.Sets/Open": "o",

	"grpc.health.v1.Health/Check": all, "grpc.health.v1.Health/Watch": all, "grpc.health.v1.Health/List": all,
	"grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      "satcro",
	"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "satcro",
}

// everybody is one of each kind, by its letter above; tokens stand beside certificates.
func (s *site) everybody() map[string][]who {
	return map[string][]who{
		"n": {s.nobody()}, "s": {s.byCert(auth.Store)}, "a": {s.byCert(auth.Alloc)},
		"d": {s.of(otherSet, auth.Store)}, "b": {s.of(otherSet, auth.Alloc)},
		"t": {s.byCert(auth.Router), s.of(otherSet, auth.Router)},
		"c": {s.byCert(auth.Caller), s.byToken(auth.Caller), s.of(otherSet, auth.Caller)},
		"r": {s.byCert(auth.Reader), s.byToken(auth.Reader), s.of(otherSet, auth.Reader)},
		"o": {s.byCert(auth.Operator), s.byToken(auth.Operator), s.of(otherSet, auth.Operator)},
		"x": {s.of(stranger, auth.Store), s.of(stranger, auth.Alloc), s.of(stranger, auth.Router), s.of(stranger, auth.Caller), s.of(stranger, auth.Operator)},
	}
}

// served are the methods that a server has, by its own reflection.
func served(t *testing.T, conn *grpc.ClientConn) (out []protoreflect.MethodDescriptor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	stream, err := reflectpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err == nil {
		err = stream.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range reply.GetListServicesResponse().GetService() {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service.GetName()))
		if err != nil {
			t.Fatal(err)
		}
		methods := found.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			out = append(out, methods.Get(i))
		}
	}
	return out
}

func full(m protoreflect.MethodDescriptor) string {
	return string(m.Parent().FullName()) + "/" + string(m.Name())
}

// refusal is the name with which a method answers an empty message to those who may not
// call it; "" if it was reached, whatever it said.
func refusal(t *testing.T, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, wait time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	var err error
	if m.IsStreamingClient() || m.IsStreamingServer() {
		var stream grpc.ClientStream
		stream, err = conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+full(m))
		if err == nil {
			_ = stream.SendMsg(in) // RecvMsg says why not
			err = stream.RecvMsg(out)
		}
	} else {
		err = conn.Invoke(ctx, "/"+full(m), in, out)
	}
	switch code := rpc.CodeOf(err); code {
	case pb.ErrorCode_ERROR_CODE_UNAUTHENTICATED, pb.ErrorCode_ERROR_CODE_FORBIDDEN:
		return code.String()
	}
	return ""
}

func TestEveryMethodOfEveryDaemonIsForItsRolesAlone(t *testing.T) {
	s := startSite(t, auth.Require)
	people := s.everybody()
	seen := map[string]bool{}
	var asking sync.WaitGroup
	for what, addr := range map[string]string{"store": s.store.Addr(), "allocsvr": s.alloc.Addr(), "router": s.route.Addr()} {
		methods := served(t, s.dial(people["o"][0], addr))
		conns := map[string]*grpc.ClientConn{}
		for _, all := range people {
			for _, w := range all {
				conns[w.name] = s.dial(w, addr)
			}
		}
		for _, m := range methods {
			name := full(m)
			seen[name] = true
			want, listed := matrix[name]
			if _, there := auth.Methods["/"+name]; !listed || !there {
				t.Errorf("%s serves %s: the table of methods has it: %v, this test: %v", what, name, there, listed)
				continue
			}
			if want == "o" && what == "router" {
				want = "" // it passes nothing on that callers may not
			}
			for letter, all := range people {
				for _, w := range all {
					asking.Go(func() {
						allowed, wait := strings.Contains(want, letter), patient
						if allowed { // some handlers wait for what an empty message never brings
							wait = 10 * time.Second
						}
						got := refusal(t, conns[w.name], m, wait)
						if (got == "") != allowed {
							t.Errorf("%s: %s as %s: got %q, want allowed: %v", what, name, w.name, got, allowed)
						}
						if (letter == "n" || letter == "x") && got != "" && got != pb.ErrorCode_ERROR_CODE_UNAUTHENTICATED.String() {
							t.Errorf("%s: %s as %s: got %s", what, name, w.name, got)
						}
					})
				}
			}
		}
	}
	asking.Wait()
	for name := range auth.Methods {
		if !seen[strings.TrimPrefix(name, "/")] {
			t.Errorf("the table has %s, which no daemon serves", name)
		}
	}
	s.noSecrets()
}

// web calls a path of the router's HTTP front.
func (s *site) web(w who, method, path, body string) (int, string) {
	s.t.Helper()
	return s.webAt(s.route.HTTPAddr(), w, method, path, body)
}

func (s *site) webAt(addr string, w who, method, path, body string) (int, string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.caDir, auth.CAFile))
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	cfg := &tls.Config{RootCAs: pool}
	if w.files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(w.files.Cert, w.files.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: cfg}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "https://"+addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	reply, err := (&http.Client{Transport: transport, Timeout: patient}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer reply.Body.Close()
	answer, _ := io.ReadAll(reply.Body)
	if (reply.StatusCode == http.StatusUnauthorized) != (reply.Header.Get("WWW-Authenticate") == "Bearer") {
		s.t.Errorf("%s %s: %s with WWW-Authenticate %q", method, path, reply.Status, reply.Header.Get("WWW-Authenticate"))
	}
	return reply.StatusCode, string(answer)
}

// paths are the calls of the HTTP front, each with a request that its handler takes, and
// who may make them, as in the matrix.
var paths = []struct{ path, method, query, body, may string }{
	{"/", "GET", "", "", all},
	{"/v1/next", "POST", "", `{"uid":7}`, "tco"},
	{"/v1/batch", "POST", "", `{"uids":[7]}`, "tco"},
	{"/v1/open", "POST", "", `{"uid":7}`, "tco"},
	{"/v1/done", "POST", "", `{"uid":7,"first":1,"ticket":"5"}`, "tco"},
	{"/v1/mark", "GET", "?uids=7", "", "tcro"},
	{"/v1/watch", "GET", "?uid=7&wait=0s", "", "tcro"},
	{"/v1/lookup", "GET", "?uid=7&request_id=a", "", "tcro"},
	{"/v1/current", "GET", "?uids=7", "", "tcro"},
	{"/v1/current/batch", "POST", "", `{"uids":[7]}`, "tcro"},
	{"/v1/raise/batch", "POST", "", `{"uids":[7],"at_least":[5]}`, "tco"},
	{"/v1/raise", "POST", "", `{"uid":7,"at_least":5}`, "tco"},
	{"/v1/snowflake/generate", "POST", "", `{}`, "tco"},
	{"/v1/snowflake/decode", "GET", "?number=5", "", "tcro"},
	{"/v1/snowflake/compose", "POST", "", `{"unix_ms":1700000000000}`, "tcro"},
	{"/v1/snowflake/layouts", "GET", "", "", "tcro"},
	{"/v1/segment/take", "POST", "", `{"tag":"t"}`, "tco"},
	{"/v1/number/next", "POST", "", `{"tag":"t"}`, "tco"},
	{"/v1/number/show", "GET", "?tag=t", "", "tcro"},
	{"/api/snowflake/v1/gen/", "POST", "", `{"namespace":1}`, "tco"},
	{"/api/snowflake/v1/gen", "POST", "", `{"namespace":1}`, "tco"},
	{"/api/segment/get/{tag}", "GET", "", "", "tco"},
	{"/api/snowflake/get/{key}", "GET", "", "", "tco"},
	{"/decodeSnowflakeId", "GET", "?snowflakeId=5", "", "tcro"},
	{"/cache", "GET", "", "", "tcro"},
	{"/db", "GET", "", "", "tcro"},
	{"/livez", "GET", "", "", all},
	{"/readyz", "GET", "", "", all},
	{"/openapi.yaml", "GET", "", "", all},
}

func TestEveryPathOfTheHTTPFrontIsForItsRolesAlone(t *testing.T) {
	s := startSite(t, auth.Require)
	code, document := s.web(s.nobody(), "GET", "/openapi.yaml", "")
	if code != http.StatusOK {
		t.Fatalf("the document: %d", code)
	}
	var known []string
	for line := range strings.Lines(document) {
		if rest, ok := strings.CutPrefix(line, "  /"); ok {
			known = append(known, "/"+strings.TrimSuffix(strings.TrimSpace(rest), ":"))
		}
	}
	var tried []string
	for _, p := range paths {
		tried = append(tried, p.path)
	}
	if slices.Sort(known); !slices.Equal(known, slices.Sorted(slices.Values(tried))) {
		t.Errorf("the front has\n%q, this test\n%q", known, tried)
	}
	for letter, all := range s.everybody() {
		for _, w := range all {
			for _, p := range paths {
				path := strings.NewReplacer("{tag}", "t", "{key}", "default").Replace(p.path) + p.query
				code, answer := s.web(w, p.method, path, p.body)
				refused := code == http.StatusUnauthorized || code == http.StatusForbidden
				if allowed := strings.Contains(p.may, letter); refused == allowed {
					t.Errorf("%s as %s: got %d %s, want allowed: %v", p.path, w.name, code, answer, allowed)
				}
				if code == http.StatusInternalServerError || (letter == "n" || letter == "x") && code == http.StatusForbidden {
					t.Errorf("%s as %s: got %d %s", p.path, w.name, code, answer)
				}
			}
		}
	}
	s.noSecrets()
}

// redis sends lines of the RESP front's inline commands and gives the answer to each.
func (s *site) redis(w who, lines ...string) (out []string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.caDir, auth.CAFile))
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	cfg := &tls.Config{RootCAs: pool}
	if w.files.Cert != "" {
		pair, err := tls.LoadX509KeyPair(w.files.Cert, w.files.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	conn, err := tls.Dial("tcp", s.route.RESPAddr(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient))
	in := bufio.NewReader(conn)
	if w.token != "" {
		lines = append([]string{"AUTH " + w.token}, lines...)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(conn, "%s\r\nECHO end\r\n", line); err != nil {
			s.t.Fatal(err)
		}
		answer := ""
		for !strings.HasSuffix(answer, "$3\r\nend\r\n") {
			got, err := in.ReadString('\n')
			if err != nil {
				s.t.Fatalf("%s: %v", strings.Fields(line)[0], err)
			}
			answer += got
		}
		out = append(out, strings.TrimSpace(strings.TrimSuffix(answer, "$3\r\nend\r\n")))
	}
	if w.token != "" {
		if out[0] != "+OK" {
			s.t.Errorf("AUTH as %s: got %s", w.name, out[0])
		}
		out = out[1:]
	}
	return out
}

// all may call what takes and reads nothing.
const all = "nxsbdatcro"

func TestEveryCommandOfTheRESPFrontIsForItsRolesAlone(t *testing.T) {
	s := startSite(t, auth.Require)
	commands := []struct{ line, may string }{
		{"PING", all}, {"CLIENT ID", all}, {"ECHO x", all}, {"SELECT 0", all}, {"CONFIG GET x", all}, {"INFO", all},
		{"CLUSTER INFO", all}, {"COMMAND COUNT", all}, {"UNWATCH", all}, {"WATCH seq:7", all},
		{"INCR seq:7", "tco"}, {"SEQ.NEXT seq:7 ID a", "tco"}, {"SEQ.LOOKUP seq:7 ID a", "tcro"}, {"INCRBY seq:7 2", "tco"}, {"INCR tag:t", "tco"}, {"INCR snowflake:default", "tco"},
		{"GET seq:7", "tcro"}, {"MGET seq:7 seq:user/8", "tcro"},
		{"SEQ.OPEN seq:7", "tco"}, {"SEQ.DONE seq:7 1 1", "tco"}, {"SEQ.CANCEL seq:7 1 1", "tco"}, {"SEQ.MARK seq:7 seq:user/8", "tcro"}, {"SEQ.WAIT seq:7 0 0", "tcro"},
		{"SEQ.RAISE seq:7 1", "tco"},
	}
	// These commands name the caller, or end the connection, and are tried below. The commands of
	// transactions are tried in the test of transactions.
	tried := map[string]bool{"auth": true, "hello": true, "quit": true, "multi": true, "exec": true, "discard": true}
	var lines []string
	for _, c := range commands {
		lines = append(lines, c.line)
		tried[strings.ToLower(strings.Fields(c.line)[0])] = true
	}
	for _, word := range strings.Fields(s.redis(s.nobody(), "COMMAND LIST")[0]) {
		if !strings.ContainsAny(word[:1], "*$") && !tried[word] {
			t.Errorf("command %q is not tried", word)
		}
	}
	for letter, some := range s.everybody() {
		for _, w := range some {
			for i, got := range s.redis(w, lines...) {
				refused := strings.HasPrefix(got, "-NOAUTH UNAUTHENTICATED") || strings.HasPrefix(got, "-NOPERM FORBIDDEN")
				if allowed := strings.Contains(commands[i].may, letter); refused == allowed {
					t.Errorf("%s as %s: got %s, want allowed: %v", lines[i], w.name, got, allowed)
				}
			}
		}
	}
	token := s.tokens[auth.Caller].Secret()
	nobody := s.nobody()
	for line, want := range map[string]string{
		"AUTH " + token:                              "+OK",
		"AUTH caller-1 " + token:                     "+OK",
		"AUTH default " + token:                      "+OK",
		"AUTH other " + token:                        "-WRONGPASS",
		"AUTH " + auth.NewToken().Secret():           "-WRONGPASS",
		"AUTH swordfish":                             "-WRONGPASS",
		"HELLO 3 AUTH caller-1 " + token:             "%7",
		"HELLO 2 AUTH default " + token:              "*14",
		"HELLO 3 AUTH default swordfish":             "-WRONGPASS",
		"HELLO 3 AUTH other " + token + " SETNAME x": "-WRONGPASS",
	} {
		got := s.redis(nobody, line, "INCR seq:7")
		if !strings.HasPrefix(got[0], want) || strings.HasPrefix(got[1], ":") == strings.HasPrefix(want, "-") {
			t.Errorf("%s ...: got %q, want %s", strings.Fields(line)[0], got, want)
		}
	}
	s.noSecrets()
}
