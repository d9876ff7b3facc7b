package hostport

import (
	"strings"
	"testing"
)

func TestAnAddressThatReachesNobodyIsRefused(t *testing.T) {
	for addr, want := range map[string]string{
		"": "missing port", "localhost": "missing port", "http://x:1": "too many colons", "https://x": "port", "x:1/y": "no number",
		"//x:1": "a scheme or a path", "a b:1": "a scheme or a path", "a@b:1": "a scheme or a path",
		"0.0.0.0:7410": "every interface", "[::]:7410": "every interface", "[::0]:1": "every interface", ":7410": "no host",
		"127.0.0.1:0": "port 0", "127.0.0.1:99999": "no number", "127.0.0.1:": "no port", "x:http": "no number", "x:-1": "no number", "::1:7410": "too many colons",
	} {
		if err := Dial(addr); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "host:port") {
			t.Errorf("%q: got %v, want %q", addr, err, want)
		}
	}
	for _, addr := range []string{"127.0.0.1:1", "[::1]:65535", "localhost:7410", "alloc-0.allocsvr.seqsvr.svc.cluster.local:7410", "[fe80::1%eth0]:1", "xn--bcher-kva.example:1"} {
		if err := Dial(addr); err != nil {
			t.Errorf("%q: got %v", addr, err)
		}
	}
	if err := DialAll("--stores", []string{"a:1", "b"}); err == nil || !strings.Contains(err.Error(), `--stores "b"`) {
		t.Errorf("got %v", err)
	}
}

func TestListeningOnAllInterfacesNeedsAnAddressToTell(t *testing.T) {
	for _, row := range []struct {
		listen, advertise string
		fits              bool
	}{
		{"127.0.0.1:0", "", true}, {"localhost:7410", "", true}, {"0.0.0.0:7410", "a:7410", true}, {":7410", "a:7410", true}, {"[::]:0", "a:1", true},
		{"0.0.0.0:7410", "", false}, {"[::]:7410", "", false}, {":7410", "", false}, {"7410", "", false}, {"127.0.0.1:99999", "", false},
		{"127.0.0.1:1", "0.0.0.0:1", false}, {"127.0.0.1:1", "a:0", false},
	} {
		if err := Told(row.listen, row.advertise); (err == nil) != row.fits {
			t.Errorf("listen %q, advertise %q: got %v", row.listen, row.advertise, err)
		}
	}
	for addr, fits := range map[string]bool{":7410": true, "0.0.0.0:0": true, "[::]:1": true, "a:b": false, "http://a:1": false, "a": false, "a:65536": false} {
		if err := Listen(addr); (err == nil) != fits {
			t.Errorf("listen on %q: got %v", addr, err)
		}
	}
}
