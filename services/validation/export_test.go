package validation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
)

// Catalog is the built-in catalog as a new site gets it.
func Catalog(t *testing.T) []*ent.ValidationTest {
	t.Helper()
	tests, err := readCatalog()
	require.NoError(t, err)
	s := New(nil, time.Now)
	out := make([]*ent.ValidationTest, len(tests))
	for i, test := range tests {
		row, err := s.builtIn(ent.NewClient(), "site", test)
		require.NoError(t, err)
		out[i] = stored(row)
	}
	return out
}

// stored is the row that a creation would store.
func stored(c *ent.ValidationTestCreate) *ent.ValidationTest {
	m := c.Mutation()
	row := &ent.ValidationTest{}
	row.TestID, _ = m.TestID()
	row.TestKey, _ = m.TestKey()
	row.Version, _ = m.Version()
	row.VersionNumber, _ = m.VersionNumber()
	row.Name, _ = m.Name()
	row.Contexts, _ = m.Contexts()
	row.SupportedPlatforms, _ = m.SupportedPlatforms()
	row.Tags, _ = m.Tags()
	row.Enabled, _ = m.Enabled()
	row.Verified, _ = m.Verified()
	return row
}
