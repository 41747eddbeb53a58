package telemetry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// traceIDLength is that of W3C Trace Context: 16 bytes in hexadecimal.
const traceIDLength = 32

type traceKey struct{}

// WithTraceID returns a context that belongs to the trace of id.
func WithTraceID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

// TraceID returns the trace id of ctx, "" where it has none.
func TraceID(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// NewTraceID returns a fresh trace id.
func NewTraceID() string {
	var id [traceIDLength / 2]byte
	_, _ = rand.Read(id[:]) // never fails on supported platforms
	return hex.EncodeToString(id[:])
}

// ParseTraceparent returns the trace id of a W3C traceparent header; ok is false
// when the header is not one.
func ParseTraceparent(header string) (id string, ok bool) {
	parts := strings.Split(header, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return "", false
	}
	id = parts[1]
	if len(id) != traceIDLength || strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return "", false
	}
	return id, true
}
