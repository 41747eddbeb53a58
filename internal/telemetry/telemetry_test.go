package telemetry

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoggerAddsTraceID(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger, err := NewLogger(&out, FormatJSON, "info")
	require.NoError(t, err)
	id := NewTraceID()
	require.Len(t, id, 32)
	logger.With("a", 1).DebugContext(t.Context(), "hidden")
	logger.With("a", 1).InfoContext(WithTraceID(t.Context(), id), "shown")
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	require.Equal(t, id, record["trace_id"])
	require.Equal(t, "shown", record["msg"])
}

func TestLoggerRefusesUnknownSettings(t *testing.T) {
	t.Parallel()
	_, err := NewLogger(&bytes.Buffer{}, "xml", "info")
	require.EqualError(t, err, `log format "xml" is not one of text, json`)
	_, err = NewLogger(&bytes.Buffer{}, "text", "loud")
	require.EqualError(t, err, `log level "loud" is not one of debug, info, warn, error`)
}

func TestParseTraceparent(t *testing.T) {
	t.Parallel()
	id, ok := ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	require.True(t, ok)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", id)
	for _, bad := range []string{
		"", "00", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
	} {
		_, ok := ParseTraceparent(bad)
		require.False(t, ok, bad)
	}
}
