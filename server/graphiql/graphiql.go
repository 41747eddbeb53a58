// Package graphiql serves GraphiQL from the binary: the page and all it needs, so
// that it works without a network. The files under dist are built from web/graphiql
// by `make graphiql`; LICENSES holds the licences of what is bundled in them.
package graphiql

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed dist
var dist embed.FS

// contentSecurityPolicy allows this server's own files and nothing else. Two things
// need more than 'self': GraphiQL's menus and dialogs insert a style element each
// time they open (to hide the scroll bar behind them), and CodeMirror's style sheet
// holds a few small images as data: URLs.
const contentSecurityPolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type file struct {
	content     []byte
	contentType string
	etag        string
}

// Register adds the page at / and its files below /graphiql/ to mux.
func Register(mux *http.ServeMux) error {
	files, err := load()
	if err != nil {
		return err
	}
	for name, f := range files {
		pattern := "GET /graphiql/" + name
		if name == "index.html" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, f)
	}
	return nil
}

func load() (map[string]file, error) {
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, fmt.Errorf("graphiql: %w", err)
	}
	files := map[string]file{}
	for _, entry := range entries {
		content, err := fs.ReadFile(dist, "dist/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("graphiql: %w", err)
		}
		sum := sha256.Sum256(content)
		files[entry.Name()] = file{
			content:     content,
			contentType: contentType(entry.Name()),
			etag:        `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		}
	}
	return files, nil
}

// ServeHTTP answers with the file, which the browser may keep but must ask for
// again: a new binary has new files under the old names.
func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("Cache-Control", "no-cache")
	header.Set("ETag", f.etag)
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", f.contentType)
	_, _ = w.Write(f.content) // the caller may be gone
}

func contentType(name string) string {
	switch {
	case strings.HasSuffix(name, ".html"):
		return "text/html; charset=utf-8"
	case strings.HasSuffix(name, ".js"):
		return "text/javascript; charset=utf-8"
	case strings.HasSuffix(name, ".css"):
		return "text/css; charset=utf-8"
	case strings.HasSuffix(name, ".svg"):
		return "image/svg+xml"
	default:
		return "application/octet-stream"
	}
}
