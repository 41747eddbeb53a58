package notify_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"fleetgraph/internal/notify"
)

func small(int) int { return 1 }

// upTo reads a follower until it has got n, and returns what it got.
func upTo(t *testing.T, f *notify.Follower[int], n int) (got []int) {
	t.Helper()
	for {
		events, err := f.Next(t.Context())
		require.NoError(t, err)
		if got = append(got, events...); got[len(got)-1] >= n {
			return got
		}
	}
}

func numbers(from, to int) (out []int) {
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

func TestEachFollowerGetsEachEventOnceInOrder(t *testing.T) {
	t.Parallel()
	hub := notify.NewHub(small)
	const events, followers = 1000, 20
	var all sync.WaitGroup
	for range followers {
		f := hub.Follow("a")
		all.Go(func() {
			defer f.Leave()
			require.Equal(t, numbers(1, events), upTo(t, f, events))
		})
	}
	other := hub.Follow("b")
	for i := 1; i <= events; i += 10 {
		hub.Publish("a", numbers(i, i+9))
	}
	all.Wait()
	require.False(t, hub.Followed("a"))
	require.True(t, hub.Followed("b"))
	other.Leave()
}

func TestWhoJoinsLaterGetsWhatComesLater(t *testing.T) {
	t.Parallel()
	hub := notify.NewHub(small)
	first := hub.Follow("a")
	hub.Publish("a", numbers(1, 5))
	second := hub.Follow("a")
	hub.Publish("a", numbers(6, 9))
	require.Equal(t, numbers(1, 9), upTo(t, first, 9))
	require.Equal(t, numbers(6, 9), upTo(t, second, 9))
}

func TestWhoIsBehindTheWindowIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, kept int
	}{
		"in number": {1, 1024},
		"in bytes":  {1 << 18, 4},
		"of events that are larger than the window": {2 << 20, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := notify.NewHub(func(int) int { return c.size })
			f := hub.Follow("a")
			for i := range c.kept {
				hub.Publish("a", []int{i + 1})
			}
			require.Equal(t, numbers(1, c.kept), upTo(t, f, c.kept))
			for i := range c.kept + 1 {
				hub.Publish("a", []int{i + 1})
			}
			_, err := f.Next(t.Context())
			require.ErrorIs(t, err, notify.ErrBehind)
			_, err = f.Next(t.Context())
			require.ErrorIs(t, err, notify.ErrBehind, "until it has joined again")
			f.Rejoin()
			hub.Publish("a", []int{7})
			require.Equal(t, []int{7}, upTo(t, f, 7))
			hub.Publish("a", numbers(1, 3*c.kept)) // more than the window at once
			_, err = f.Next(t.Context())
			require.ErrorIs(t, err, notify.ErrBehind)
		})
	}
}

func TestAClosedHubHandsOutWhatItHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := notify.NewHub(small)
		f, waiting := hub.Follow("a"), hub.Follow("b")
		ended := make(chan error, 1)
		go func() {
			_, err := waiting.Next(context.WithoutCancel(t.Context()))
			ended <- err
		}()
		synctest.Wait()
		hub.Publish("a", numbers(1, 3))
		hub.Close()
		require.Equal(t, numbers(1, 3), upTo(t, f, 3))
		_, err := f.Next(t.Context())
		require.ErrorIs(t, err, notify.ErrClosed)
		require.ErrorIs(t, <-ended, notify.ErrClosed)
		_, err = hub.Follow("c").Next(t.Context())
		require.ErrorIs(t, err, notify.ErrClosed)
	})
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := notify.NewHub(small).Follow("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
