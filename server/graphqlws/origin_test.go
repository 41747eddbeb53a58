package graphqlws_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/server/graphqlws"
)

func TestAnOriginIsReadAsBrowsersSendIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://console.example.com":      "https://console.example.com",
		"HTTPS://Console.Example.com":      "https://console.example.com",
		"https://console.example.com:443":  "https://console.example.com",
		"http://console.example.com:80":    "http://console.example.com",
		"https://console.example.com:8443": "https://console.example.com:8443",
		"http://[2001:db8::1]:8080":        "http://[2001:db8::1]:8080",
	} {
		got, err := graphqlws.ParseOrigins([]string{text})
		require.NoError(t, err, text)
		require.Equal(t, []string{want}, got)
	}
	for _, text := range []string{
		"", "*", "null", "https://*.example.com", "console.example.com", "//console.example.com", "https://console.example.com/", "https:", "https://",
		"https://console.example.com/app", "https://console.example.com?a", "https://console.example.com?", "https://console.example.com#", "https://user@console.example.com", "ftp://console.example.com", "https://:443", "https://console.example.com:x",
	} {
		_, err := graphqlws.ParseOrigins([]string{"https://good.example.com", text})
		require.ErrorContains(t, err, "is no origin", text)
	}
}
