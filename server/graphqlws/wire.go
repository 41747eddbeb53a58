package graphqlws

import (
	"bufio"
	"net"
	"net/http"
	"sync"
)

// wireBuffer is how much of one batch of messages goes to the network at once.
const wireBuffer = 64 << 10

// kernelBuffer is how much the system may hold for a reader that stands still; left
// to itself it holds megabytes, and it takes as long to notice.
const kernelBuffer = 256 << 10

// wire is a network connection that can hold back what is written, so that many
// messages go out in one call.
type wire struct {
	net.Conn
	mu   sync.Mutex
	held []byte
	hold bool
}

// Write writes p, or keeps it until flush.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hold {
		return w.Conn.Write(p)
	}
	if len(w.held)+len(p) > wireBuffer {
		if err := w.out(); err != nil {
			return 0, err
		}
	}
	if len(p) > wireBuffer {
		return w.Conn.Write(p)
	}
	w.held = append(w.held, p...)
	return len(p), nil
}

// batch holds back what fn writes and sends it when fn has returned.
func (w *wire) batch(fn func() error) error {
	w.mu.Lock()
	w.hold = true
	w.mu.Unlock()
	err := fn()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold = false
	if err != nil {
		return err
	}
	return w.out()
}

func (w *wire) out() error {
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.Conn.Write(w.held)
	if w.held = w.held[:0]; cap(w.held) > wireBuffer/4 {
		w.held = nil // an idle connection keeps no large buffer
	}
	return err
}

// hijacker lets gorilla take the connection through whatever wraps the response.
type hijacker struct {
	http.ResponseWriter
	wire *wire
}

// Hijack takes the connection over.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	if tcp, ok := conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(kernelBuffer)
	}
	h.wire = &wire{Conn: conn}
	return h.wire, rw, nil
}
