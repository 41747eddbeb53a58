package fleet

import (
	"crypto/rand"
	"encoding/binary"
	"strings"
	"time"
)

// Prefixes of ids; each names one type of object.
const (
	PrefixSite        = "site"
	PrefixSku         = "sku"
	PrefixMachine     = "machine"
	PrefixHealthAlert = "alert"
	PrefixTransition  = "transition"
	PrefixToken       = "token"
	PrefixIdempotency = "idem"
	PrefixExpected    = "expected"
	PrefixAllocation  = "allocation"
	PrefixMembership  = "member"
	PrefixClaim       = "claim"
	PrefixWork        = "work"
	PrefixJob         = "job"
	PrefixBulkItem    = "bulkitem"

	PrefixValidationTest = "test"
)

// crockford is the alphabet of TypeID: base 32 without i, l, o, u.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// idSuffixLength is 128 bits in base 32, the first character carrying three.
const idSuffixLength = 26

// NewID returns a fresh id in TypeID form: the prefix, an underscore, and a
// version 7 UUID in lower-case Crockford base 32. Ids of one prefix sort by the
// millisecond they were made in. It is the one place that draws ids.
func NewID(prefix string) string {
	var u [16]byte
	_, _ = rand.Read(u[6:]) // never fails on supported platforms
	binary.BigEndian.PutUint64(u[:8], uint64(time.Now().UnixMilli())<<16|uint64(binary.BigEndian.Uint16(u[6:8])))
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return prefix + "_" + encodeID(u)
}

// IDPrefix returns the prefix of a well-formed id, which tells the type of the
// object it names; ok is false for anything else.
func IDPrefix(id string) (prefix string, ok bool) {
	i := strings.LastIndexByte(id, '_')
	if i <= 0 || len(id)-i-1 != idSuffixLength {
		return "", false
	}
	suffix := id[i+1:]
	if suffix[0] > '7' {
		return "", false
	}
	for _, c := range []byte(suffix) {
		if strings.IndexByte(crockford, c) < 0 {
			return "", false
		}
	}
	return id[:i], true
}

// CheckID returns an INVALID_ARGUMENT error for field unless id is well formed
// and of the given prefix. It does not look whether the object exists.
func CheckID(field, prefix, id string) error {
	if got, ok := IDPrefix(id); !ok || got != prefix {
		return Invalid(field, "ID_INVALID", "%s is not a %s id (form %s_…)", Quoted(id), prefix, prefix)
	}
	return nil
}

func encodeID(u [16]byte) string {
	hi, lo := binary.BigEndian.Uint64(u[:8]), binary.BigEndian.Uint64(u[8:])
	var out [idSuffixLength]byte
	for i := idSuffixLength - 1; i >= 0; i-- {
		out[i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}
