package sku

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Bounds of what a document may hold: far above any machine, and low enough that
// the total of a list (entries x count x size) stays below 1<<63.
const (
	maxDocuments = 10_000         // documents in a file
	maxEntries   = 1024           // entries of a list
	maxCount     = 1 << 20        // parts of an entry
	maxSizeMb    = math.MaxUint32 // MiB of a module, a drive or a bound
)

// reader takes typed values out of one JSON object. The first fault is kept in
// err with the path of its key; after it every value reads as zero.
type reader struct {
	path string
	keys map[string]json.RawMessage
	err  error
}

func (r *reader) at(key string) string {
	if r.path == "" {
		return key
	}
	return r.path + "." + key
}

func (r *reader) fail(key, format string, args ...any) {
	if r.err == nil {
		r.err = documentError(r.at(key), format, args...)
	}
}

// absent tells whether key is missing or null.
func (r *reader) absent(key string) bool {
	raw, ok := r.keys[key]
	return !ok || string(raw) == "null"
}

func (r *reader) required(key string) bool {
	if r.err == nil && r.absent(key) {
		r.fail(key, "missing field `%s`", key)
	}
	return r.err == nil
}

func (r *reader) text(key string) string {
	if !r.required(key) {
		return ""
	}
	return r.string(key, r.keys[key])
}

func (r *reader) optionalText(key string) *string {
	if r.err != nil || r.absent(key) {
		return nil
	}
	text := r.string(key, r.keys[key])
	return &text
}

func (r *reader) string(key string, raw json.RawMessage) string {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		r.fail(key, "expected a string")
	} else if strings.ContainsRune(text, 0) {
		r.fail(key, "a NUL character cannot be stored")
	}
	return text
}

func (r *reader) number(key string, limit int64) int64 {
	if !r.required(key) {
		return 0
	}
	return r.integer(key, r.keys[key], limit)
}

func (r *reader) optionalNumber(key string, limit int64) int64 {
	if r.err != nil || r.absent(key) {
		return 0
	}
	return r.integer(key, r.keys[key], limit)
}

func (r *reader) count(key string) int { return int(r.number(key, maxCount)) }

func (r *reader) optionalSize(key string) *int64 {
	if r.err != nil || r.absent(key) {
		return nil
	}
	size := r.integer(key, r.keys[key], maxSizeMb)
	return &size
}

func (r *reader) integer(key string, raw json.RawMessage, limit int64) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > limit {
		r.fail(key, "expected a whole number from 0 to %d", limit)
		return 0
	}
	return n
}

func (r *reader) counts(key string) []int {
	numbers := []int{}
	r.elements(key, maxEntries, func(at string, raw json.RawMessage) {
		numbers = append(numbers, int(r.integer(at, raw, maxCount)))
	})
	return numbers
}

func (r *reader) optionalTexts(key string) []string {
	if r.err != nil || r.absent(key) {
		return nil
	}
	var texts []string
	r.elements(key, maxEntries, func(at string, raw json.RawMessage) {
		texts = append(texts, r.string(at, raw))
	})
	return texts
}

// object calls read with the object under key, if there is one.
func (r *reader) object(key string, read func(*reader)) {
	if r.err != nil || r.absent(key) {
		return
	}
	r.nested(key, r.keys[key], read)
}

// objects calls read with every object of the list under key.
func (r *reader) objects(key string, limit int, read func(*reader)) {
	r.elements(key, limit, func(at string, raw json.RawMessage) { r.nested(at, raw, read) })
}

func (r *reader) nested(key string, raw json.RawMessage, read func(*reader)) {
	object, err := readObject(r.at(key), raw)
	if err != nil {
		r.err = err
		return
	}
	read(object)
	r.err = object.err
}

// elements calls read with every element of the list under key and its relative
// path, until one of them is at fault.
func (r *reader) elements(key string, limit int, read func(at string, raw json.RawMessage)) {
	if !r.required(key) {
		return
	}
	var elements []json.RawMessage
	if !bytes.HasPrefix(r.keys[key], []byte("[")) || json.Unmarshal(r.keys[key], &elements) != nil {
		r.fail(key, "expected a list")
		return
	}
	if len(elements) > limit {
		r.fail(key, "%d entries, at most %d are accepted", len(elements), limit)
		return
	}
	for i, raw := range elements {
		if read(key+"."+strconv.Itoa(i), raw); r.err != nil {
			return
		}
	}
}
