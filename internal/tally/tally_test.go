package tally_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/tally"
)

func TestAKeyHasNoMoreThanItsLimitAndOthersDoNotCount(t *testing.T) {
	t.Parallel()
	of := tally.New(3)
	require.True(t, of.Take("a", 2))
	require.False(t, of.Take("a", 2), "what does not fit is not taken in part")
	require.True(t, of.Take("a", 1))
	require.True(t, of.Take("b", 3))
	of.Give("a", 3)
	require.True(t, of.Take("a", 3))
	of.Give("a", 3)
	of.Give("b", 3)
	require.Zero(t, of.Keys(), "who has nothing is forgotten")
}

func TestATallyIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	of := tally.New(10)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			key := strconv.Itoa(i % 2)
			for range 1000 {
				if of.Take(key, 3) {
					of.Give(key, 3)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, of.Keys())
}
