package main

import (
	"fmt"
	"os"
	"strings"
	"text/template"

	"ariga.io/atlas/sql/migrate"
)

// content is a migration in goose's form, without a way back: a schema goes forward
// only. lock_timeout makes a migration that would queue behind a long query, and
// hold up all others behind itself, fail instead.
const content = `-- +goose Up
SET LOCAL lock_timeout = '10s';
{{ range .Changes }}{{ with .Comment }}-- {{ . }}
{{ end }}{{ .Cmd }};
{{ end }}`

// newFormatter numbers the next file of dir: 0001, 0002, and so on, so that two
// changes made at once meet as a conflict and not as an order of luck.
func newFormatter(dir string) (migrate.Formatter, error) {
	next, err := nextNumber(dir)
	if err != nil {
		return nil, err
	}
	name, err := template.New("name").Parse(fmt.Sprintf("%04d_{{ .Name }}.sql", next))
	if err != nil {
		return nil, err
	}
	body, err := template.New("content").Parse(content)
	if err != nil {
		return nil, err
	}
	return migrate.NewTemplateFormatter(name, body)
}

func nextNumber(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".sql") {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(entry.Name(), "%d_", &n); err != nil {
			return 0, fmt.Errorf("%s has no number: %w", entry.Name(), err)
		}
		last = max(last, n)
	}
	return last + 1, nil
}
