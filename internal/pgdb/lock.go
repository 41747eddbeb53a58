package pgdb

import "entgo.io/ent/dialect/sql"

// ForNoKeyUpdate locks rows that are about to be decided on or changed, but not
// against rows that refer to them, as every row of history refers to its machine and
// its site: FOR UPDATE would have those wait, and deadlock with who holds them.
func ForNoKeyUpdate(s *sql.Selector) { s.For("NO KEY UPDATE") }
