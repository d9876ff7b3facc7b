package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// The files of the pages, as they are: nothing builds them.
//
//go:embed assets
var files embed.FS

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// kinds are the files that are served, by their ending; others, such as a license, are only kept.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// view is one entry of the navigation, and the page behind it.
type view struct{ Name, Title string }

var views = []view{
	{"overview", "Overview"}, {"nodes", "Nodes"}, {"sections", "Sections"}, {"leases", "Leases"}, {"events", "Events"},
	{"lookup", "Look up"}, {"ids", "IDs"}, {"segments", "Segments"}, {"drill", "Drill"},
}

// page is the one document; the views of it are chosen behind the # of its address, so that
// all its addresses are relative.
func (c *Console) page(w http.ResponseWriter, r *http.Request) {
	shown := views
	if c.cfg.Drill == nil {
		shown = views[:len(views)-1]
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, map[string]any{
		"Server": c.cfg.Server, "Version": version.Get().Version, "Views": shown, "Drill": c.cfg.Drill != nil,
		"Tokens": c.cfg.Guard.Mode() == auth.Require,
	})
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out.Bytes()) // the browser has left
}

// asset serves a file, compressed for a browser that can read that.
func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind := kinds[path.Ext(name)]
	plain, err := files.ReadFile("assets/" + name)
	if kind == "" || err != nil {
		refuse(w, http.StatusNotFound, "no such file: "+name)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		plain = zipped()[name]
	}
	_, _ = w.Write(plain) // the browser has left
}

// zipped are the files as they travel, made when somebody first looks.
var zipped = sync.OnceValue(func() map[string][]byte {
	out := map[string][]byte{}
	entries, _ := files.ReadDir("assets") // embedded: it is there
	for _, e := range entries {
		text, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			continue
		}
		var b bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails for an unknown level alone
		_, _ = zip.Write(text)                                  // to memory
		_ = zip.Close()
		out[e.Name()] = b.Bytes()
	}
	return out
})
