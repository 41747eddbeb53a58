// Package tally counts what each of many keys has at one time, up to a limit: bytes,
// connections. A key that has nothing takes no memory.
package tally

import "sync"

// Tally is the counts of one kind of thing. It is safe for concurrent use.
type Tally struct {
	most int64

	mu sync.Mutex
	of map[string]int64
}

// New returns a tally in which a key has most at once.
func New(most int64) *Tally { return &Tally{most: most, of: map[string]int64{}} }

// Most is what a key has at once.
func (t *Tally) Most() int64 { return t.most }

// Take adds n to what key has, unless that would be too much.
func (t *Tally) Take(key string, n int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[key]+n > t.most {
		return false
	}
	t.of[key] += n
	return true
}

// Give takes n off what key has, all of which Take has added before.
func (t *Tally) Give(key string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[key] -= n; t.of[key] <= 0 {
		delete(t.of, key)
	}
}

// Keys is how many keys have something.
func (t *Tally) Keys() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.of)
}
