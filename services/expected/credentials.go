package expected

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"fleetgraph/ent"
	"fleetgraph/ent/expectedmachine"
	"fleetgraph/fleet"
	"fleetgraph/internal/seal"
	"fleetgraph/services/access"
)

// ErrOtherKey is a key that does not open the credentials that are stored.
var ErrOtherKey = errors.New("the encryption key does not open the credentials in the database: it is another database's, or was replaced")

// credentials are the sealed text of a row.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// place binds a ciphertext to the row and the column that it stands in.
func place(id string) []byte { return []byte(id + "/" + expectedmachine.FieldBmcCredentials) }

// needKey refuses credentials that could not be sealed: FAILED_PRECONDITION, reason
// ENCRYPTION_KEY_MISSING.
func (s *Service) needKey(items []Fields) error {
	if s.box != nil {
		return nil
	}
	for i := range items {
		if items[i].setsCredentials() {
			return fleet.Precondition("ENCRYPTION_KEY_MISSING",
				"credentials cannot be stored, since the server has no encryption key: make one with `fleetgraph encryption-key FILE` "+
					"and start the server with --encryption-key-file FILE")
		}
	}
	return nil
}

// seal seals the credentials for the row of this id.
func (s *Service) seal(id string, f *Fields) ([]byte, error) {
	text, err := json.Marshal(credentials{f.BmcUsername.Or(""), f.BmcPassword.Or("")})
	if err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	sealed, err := s.box.Seal(text, place(id))
	if err != nil {
		return nil, fmt.Errorf("seal credentials: %w", err)
	}
	return sealed, nil
}

// CheckKey tells whether credentials are stored, and tries the box, unless that is
// nil, on one: ErrOtherKey where it does not open.
func CheckKey(ctx context.Context, client *ent.Client, box *seal.Box) (stored bool, err error) {
	row, err := client.ExpectedMachine.Query().Where(expectedmachine.BmcCredentialsNotNil()).
		Order(ent.Desc(expectedmachine.FieldUpdatedAt, expectedmachine.FieldID)).
		First(access.AsSystem(ctx, "encryption-key"))
	switch {
	case ent.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("check the encryption key: %w", err)
	case box == nil || len(row.BmcCredentials) == 0:
		return true, nil
	}
	if _, err := box.Open(row.BmcCredentials, place(row.ID)); err != nil {
		return true, ErrOtherKey
	}
	return true, nil
}
