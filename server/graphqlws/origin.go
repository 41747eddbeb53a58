package graphqlws

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ParseOrigins reads origins of pages into the form in which browsers send them. There
// is none that stands for all.
func ParseOrigins(texts []string) ([]string, error) {
	origins := make([]string, len(texts))
	for i, text := range texts {
		page, err := url.Parse(text)
		if err != nil || page.Scheme != "http" && page.Scheme != "https" || page.Hostname() == "" || strings.Contains(page.Host, "*") ||
			page.User != nil || page.Path != "" || page.RawQuery != "" || page.ForceQuery || strings.Contains(text, "#") {
			return nil, fmt.Errorf("%q is no origin, such as https://console.example.com, and nothing stands for all", text)
		}
		host := strings.ToLower(page.Host)
		origins[i] = page.Scheme + "://" + strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[page.Scheme])
	}
	return origins, nil
}

// ofAllowedOrigin lets in what is no browser's, what comes from a page of the server
// itself, and what the configuration names.
func (t *Transport) ofAllowedOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(t.config.Origins, origin) {
		return true
	}
	page, err := url.Parse(origin)
	return err == nil && strings.EqualFold(page.Host, r.Host)
}
