// Package seal encrypts what lies in the database and must not be read there:
// AES-256-GCM by a keyset of Tink, so that a key can be followed by another while
// texts under the old one stay readable.
//
// Invariants: a sealed text is bound to its place by associated data, and does not
// open at another; no error carries a key or a text. It knows no table.
package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// ErrKeyset is a text that is no keyset, or one of keys that do not encrypt with
// associated data.
var ErrKeyset = errors.New("not an encryption key: expected a cleartext Tink keyset in JSON, or the base64 of one")

// ErrSealed is a ciphertext that does not open: it is of another key or another
// place, or it was changed.
var ErrSealed = errors.New("the ciphertext does not open with this key at this place")

// Box seals and opens with one keyset. It is safe for concurrent use.
type Box struct{ primitive tink.AEAD }

// Open makes a box of a cleartext keyset, as JSON or as the base64 of that: ErrKeyset
// for anything else.
func Open(cleartext []byte) (*Box, error) {
	text := bytes.TrimSpace(cleartext)
	if !bytes.HasPrefix(text, []byte("{")) {
		decoded, err := base64.StdEncoding.DecodeString(string(text))
		if err != nil {
			return nil, ErrKeyset
		}
		text = decoded
	}
	// The errors of both would quote what they stumble over.
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, ErrKeyset
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, ErrKeyset
	}
	return &Box{primitive}, nil
}

// NewKey returns a fresh keyset of one AES-256-GCM key, as JSON and in the clear.
func NewKey() ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make an encryption key: %w", err)
	}
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)); err != nil {
		return nil, fmt.Errorf("make an encryption key: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Seal encrypts plaintext for the place that associatedData names.
func (b *Box) Seal(plaintext, associatedData []byte) ([]byte, error) {
	return b.primitive.Encrypt(plaintext, associatedData)
}

// Open decrypts what Seal has returned for the same place: ErrSealed otherwise.
func (b *Box) Open(ciphertext, associatedData []byte) ([]byte, error) {
	plaintext, err := b.primitive.Decrypt(ciphertext, associatedData)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
