// Package telemetry sets up what the process says of itself: structured logs whose
// lines carry the trace id of the request they belong to. It never sees a secret.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
)

// Formats of a log.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// NewLogger returns a logger that writes to w in a format ("text" or "json"), from
// a level on ("debug", "info", "warn" or "error").
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log level %q is not one of debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case FormatText:
		return slog.New(traced{slog.NewTextHandler(w, options)}), nil
	case FormatJSON:
		return slog.New(traced{slog.NewJSONHandler(w, options)}), nil
	default:
		return nil, fmt.Errorf("log format %q is not one of text, json", format)
	}
}

// traced adds the trace id of the context to every record.
type traced struct{ slog.Handler }

func (h traced) Handle(ctx context.Context, record slog.Record) error {
	if id := TraceID(ctx); id != "" {
		record.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h traced) WithAttrs(attrs []slog.Attr) slog.Handler { return traced{h.Handler.WithAttrs(attrs)} }

func (h traced) WithGroup(name string) slog.Handler { return traced{h.Handler.WithGroup(name)} }
