package server

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cacheSize bounds a cache of texts.
type cacheSize struct {
	entries int
	bytes   int // of all texts
	longest int // of one text: a longer one is not kept
}

// textCache keeps what belongs to the texts that were used last. It is shared by all
// callers, so it holds nothing that depends on one.
type textCache[T any] struct {
	size  cacheSize
	texts func(key string, value T) int // how many bytes of text an entry has

	mu      sync.Mutex
	entries *simplelru.LRU[string, T]
	bytes   int
}

var _ graphql.Cache[string] = (*textCache[string])(nil)

func newTextCache[T any](size cacheSize, texts func(key string, value T) int) *textCache[T] {
	c := &textCache[T]{size: size, texts: texts}
	entries, err := simplelru.NewLRU(size.entries, func(key string, value T) { c.bytes -= texts(key, value) })
	if err != nil {
		//nolint:forbidigo // broken invariant: the sizes are constants of this package, and positive
		panic("cache: " + err.Error())
	}
	c.entries = entries
	return c
}

// Get returns the value of key.
func (c *textCache[T]) Get(_ context.Context, key string) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Get(key)
}

// Add keeps a value, in place of those that were used longest ago.
func (c *textCache[T]) Add(_ context.Context, key string, value T) {
	bytes := c.texts(key, value)
	if bytes > c.size.longest {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries.Contains(key) { // the same text has the same value
		return
	}
	c.entries.Add(key, value)
	for c.bytes += bytes; c.bytes > c.size.bytes; {
		c.entries.RemoveOldest()
	}
}
