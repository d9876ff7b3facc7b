package secure

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// pages are the paths of the console, and who may see them, as in the matrix.
var pages = []struct{ path, may string }{
	{"/", all},
	{"/assets/app.js", all},
	{"/api/snapshot?topics=sections,events,ids,segments", "tro"},
	{"/api/uid?uid=7", "tro"},
	{"/api/id?id=5&layout=twitter", "tro"},
}

func TestTheConsoleIsForThoseWhoMayLook(t *testing.T) {
	s := startSite(t, auth.Require)
	operator := s.everybody()["o"][0]
	harness.Until(t, "the console knows all of the cluster", func() bool {
		code, body := s.webAt(s.route.ConsoleAddr(), operator, http.MethodGet, pages[2].path, "")
		return code == http.StatusOK && !strings.Contains(body, `{"error"`)
	})
	for _, page := range pages {
		for letter, all := range s.everybody() {
			for _, w := range all {
				code, body := s.webAt(s.route.ConsoleAddr(), w, http.MethodGet, page.path, "")
				if may := strings.Contains(page.may, letter); may != (code == http.StatusOK) || !may && code != http.StatusUnauthorized && code != http.StatusForbidden {
					t.Errorf("%s as %s: %d %.200s, may see it: %v", page.path, w.name, code, body, may)
				}
				if strings.HasPrefix(page.path, "/api/snapshot") && code == http.StatusOK && (strings.Contains(body, `{"error"`) || !strings.Contains(body, `"health"`)) {
					t.Errorf("%s as %s: a part is not known: %.2000s", page.path, w.name, body)
				}
			}
		}
	}
	if code, _ := s.webAt(s.route.ConsoleAddr(), s.nobody(), http.MethodGet, "/api/stream", ""); code != http.StatusUnauthorized {
		t.Errorf("a stream for nobody: %d, want 401", code)
	}
	s.noSecrets()
}
