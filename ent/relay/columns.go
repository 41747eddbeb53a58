package relay

import "slices"

// Columns gathers the columns that a selection needs.
type Columns struct {
	names []string
	all   bool
}

// NewColumns starts with the columns that are needed in any case.
func NewColumns(names ...string) *Columns { return &Columns{names: names} }

// Add adds columns, each once.
func (c *Columns) Add(names ...string) {
	for _, name := range names {
		if !slices.Contains(c.names, name) {
			c.names = append(c.names, name)
		}
	}
}

// AddAll gives up choosing: a field was selected whose needs are not declared.
func (c *Columns) AddAll() { c.all = true }

// Names lists the columns; ok is false when all are needed.
func (c *Columns) Names() (names []string, ok bool) { return c.names, !c.all }
