package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"fleetgraph/fleet"
	"fleetgraph/internal/openid"
	"fleetgraph/services/access"
)

// oidcFile is the form of the file of identity providers.
type oidcFile struct {
	Issuers []issuerTable `toml:"issuer"`
}

type issuerTable struct {
	URL       string       `toml:"url"`
	Audience  string       `toml:"audience"`
	NameClaim string       `toml:"name_claim"`
	Grants    []grantTable `toml:"grant"`
}

type grantTable struct {
	Claim string   `toml:"claim"`
	Value string   `toml:"value"`
	Role  string   `toml:"role"`
	Sites []string `toml:"sites"`
}

// readIssuers reads the file of the identity providers whose tokens are accepted;
// without a file there are none. It asks none of them anything.
func readIssuers(path string, now func() time.Time) ([]access.Issuer, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("OIDC configuration: %w", err)
	}
	issuers, err := parseIssuers(data, now)
	if err != nil {
		return nil, fmt.Errorf("OIDC configuration: %s: %w", path, err)
	}
	return issuers, nil
}

func parseIssuers(data []byte, now func() time.Time) ([]access.Issuer, error) {
	var file oidcFile
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, tomlError(err)
	}
	if len(file.Issuers) == 0 {
		return nil, errors.New("there is no [[issuer]]")
	}
	issuers := make([]access.Issuer, len(file.Issuers))
	for i, table := range file.Issuers {
		key := fmt.Sprintf("issuer %d", i+1)
		issuer, err := table.issuer(now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		for _, other := range issuers[:i] {
			if other.URL() == issuer.URL() {
				return nil, fmt.Errorf("%s: url: %s has an [[issuer]] already", key, table.URL)
			}
		}
		issuers[i] = issuer
	}
	return issuers, nil
}

func (t issuerTable) issuer(now func() time.Time) (access.Issuer, error) {
	if err := openid.CheckURL(t.URL); err != nil {
		return access.Issuer{}, fmt.Errorf("url: %q: %w", t.URL, err)
	}
	switch {
	case t.Audience == "": // tokens for anyone would be accepted
		return access.Issuer{}, errors.New("audience: is required")
	case len(t.Grants) == 0:
		return access.Issuer{}, errors.New("there is no [[issuer.grant]], so that nobody could do anything")
	}
	issuer := access.Issuer{
		Issuer: openid.New(t.URL, t.Audience, now), NameClaims: []string{"preferred_username", "email", "sub"},
	}
	if t.NameClaim != "" {
		issuer.NameClaims = []string{t.NameClaim, "sub"}
	}
	for i, table := range t.Grants {
		grant, err := table.grant()
		if err != nil {
			return access.Issuer{}, fmt.Errorf("grant %d: %w", i+1, err)
		}
		issuer.Grants = append(issuer.Grants, grant)
	}
	return issuer, nil
}

func (t grantTable) grant() (access.Grant, error) {
	role := fleet.Role(strings.ToUpper(t.Role))
	switch {
	case t.Claim == "":
		return access.Grant{}, errors.New("claim: is required")
	case t.Value == "":
		return access.Grant{}, errors.New("value: is required")
	case role == fleet.RoleAgent:
		return access.Grant{}, errors.New("role: agents have issued tokens, bound to their machine")
	case role.Includes(fleet.RoleViewer):
	default:
		return access.Grant{}, fmt.Errorf("role: %q is not viewer, operator or admin", t.Role)
	}
	if len(t.Sites) == 0 {
		return access.Grant{}, fmt.Errorf("sites: name at least one, or %q for all", access.AnySite)
	}
	for _, name := range t.Sites {
		if err := fleet.CheckName("sites", name); err != nil {
			return access.Grant{}, fmt.Errorf("sites: %w", err)
		}
	}
	return access.Grant{Claim: t.Claim, Value: t.Value, Role: role, Sites: t.Sites}, nil
}

// tomlError tells the line of what is unknown or cannot be read.
func tomlError(err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) {
		texts := make([]string, len(unknown.Errors))
		for i := range unknown.Errors {
			line, _ := unknown.Errors[i].Position()
			texts[i] = fmt.Sprintf("line %d: unknown key %s", line, strings.Join(unknown.Errors[i].Key(), "."))
		}
		return errors.New(strings.Join(texts, "; "))
	}
	var wrong *toml.DecodeError
	if errors.As(err, &wrong) {
		line, _ := wrong.Position()
		return fmt.Errorf("line %d: %s", line, strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	return err
}
