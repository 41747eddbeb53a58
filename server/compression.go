package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// compressedFrom is the smallest body that is compressed.
const compressedFrom = 1 << 10

// compressed compresses answers for who accepts it. Event streams and connections that
// are upgraded pass it untouched: they are sent piece by piece.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(compressedFrom),
		gzhttp.ContentTypes([]string{typeJSON, typeGraphQL, "text/html", "text/css", "text/javascript"}),
	)
	if err != nil {
		return nil, fmt.Errorf("compression: %w", err)
	}
	zipped := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" || strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream") {
			next.ServeHTTP(w, r)
			return
		}
		zipped.ServeHTTP(w, r)
	}), nil
}

// uncompressed keeps an answer from being compressed.
func uncompressed(w http.ResponseWriter) { w.Header().Set(gzhttp.HeaderNoCompression, "1") }
