package seal_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"

	"fleetgraph/internal/seal"
)

func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := seal.NewKey()
	require.NoError(t, err)
	return key
}

func open(t *testing.T, key []byte) *seal.Box {
	t.Helper()
	box, err := seal.Open(key)
	require.NoError(t, err)
	return box
}

func TestASealedTextOpensWithItsKeyAtItsPlaceOnly(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	box := open(t, key)
	place, text := []byte("row 1, column a"), []byte("hunter2")
	sealed, err := box.Seal(text, place)
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "hunter2")
	again, err := box.Seal(text, place)
	require.NoError(t, err)
	require.NotEqual(t, sealed, again, "equal texts do not show")

	for _, same := range []*seal.Box{box, open(t, key), open(t, []byte(base64.StdEncoding.EncodeToString(key))), open(t, append([]byte("\n "), key...))} {
		opened, err := same.Open(sealed, place)
		require.NoError(t, err)
		require.Equal(t, text, opened)
	}
	for name, attempt := range map[string]struct {
		box           *seal.Box
		sealed, place []byte
	}{
		"another place":   {box, sealed, []byte("row 2, column a")},
		"another key":     {open(t, newKey(t)), sealed, place},
		"a changed byte":  {box, append(bytes.Clone(sealed[:len(sealed)-1]), sealed[len(sealed)-1]^1), place},
		"a cut":           {box, sealed[:len(sealed)-1], place},
		"nothing":         {box, nil, place},
		"text in clear":   {box, text, place},
		"no place at all": {box, sealed, nil},
	} {
		_, err := attempt.box.Open(attempt.sealed, attempt.place)
		require.ErrorIs(t, err, seal.ErrSealed, name)
	}
}

func TestWhatIsNoKeyIsRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	handle, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	require.NoError(t, err)
	var other bytes.Buffer
	require.NoError(t, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&other)))
	key := newKey(t)
	for name, text := range map[string][]byte{
		"empty":            nil,
		"a password":       []byte("hunter2"),
		"an empty object":  []byte("{}"),
		"other JSON":       []byte(`{"hunter2": "hunter2"}`),
		"half a key":       key[:len(key)/2],
		"a key of a MAC":   other.Bytes(),
		"base64 of a word": []byte(base64.StdEncoding.EncodeToString([]byte("hunter2"))),
	} {
		_, err := seal.Open(text)
		require.ErrorIs(t, err, seal.ErrKeyset, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}

func TestAKeyFileIsCreatedOnceAndForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.json")
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() { errs[i] = seal.CreateFile(path) })
	}
	wait.Wait()
	created := 0
	for _, err := range errs {
		if err == nil {
			created++
			continue
		}
		require.ErrorIs(t, err, fs.ErrExist)
	}
	require.Equal(t, 1, created)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
	key, err := seal.ReadFile(path)
	require.NoError(t, err)
	open(t, key)
}

func TestAKeyFileThatOthersReachIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.json")
	require.NoError(t, seal.CreateFile(path))
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: false, 0o644: true, 0o602: true, 0o601: true} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := seal.ReadFile(path)
		require.Equal(t, refused, err != nil, "%o", mode)
	}
	_, err := seal.ReadFile(filepath.Dir(path))
	require.ErrorContains(t, err, "is not a file")
	_, err = seal.ReadFile(path + ".absent")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
