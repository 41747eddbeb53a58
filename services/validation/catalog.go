package validation

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"fleetgraph/ent"
	"fleetgraph/ent/site"
	"fleetgraph/ent/validationtest"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
)

// catalogFile holds the 22 built-in tests of NVIDIA's infra-controller (Apache-2.0) as
// its public migrations leave them at commit a02fa34b71dc.
//
//go:embed catalog.json
var catalogFile []byte

// builtIn is a test of the catalog as the file has it.
type builtIn struct {
	TestID             string   `json:"test_id"`
	Name               string   `json:"name"`
	Description        string   `json:"description"`
	Version            string   `json:"version"`
	Command            string   `json:"command"`
	Args               string   `json:"args"`
	Timeout            int      `json:"timeout"` // seconds
	Contexts           []string `json:"contexts"`
	SupportedPlatforms []string `json:"supported_platforms"`
	CustomTags         []string `json:"custom_tags"`
	Components         []string `json:"components"`
	PreCondition       *string  `json:"pre_condition"`
	ImgName            *string  `json:"img_name"`
	ContainerArg       *string  `json:"container_arg"`
	ExecuteInHost      bool     `json:"execute_in_host"`
	ExternalConfigFile *string  `json:"external_config_file"`
	ExtraOutputFile    *string  `json:"extra_output_file"`
	ExtraErrFile       *string  `json:"extra_err_file"`
	IsEnabled          bool     `json:"is_enabled"`
	Verified           bool     `json:"verified"`
	ReadOnly           bool     `json:"read_only"`
}

// contexts maps the file's names of contexts to ours.
func contexts(names []string) ([]fleet.RunContext, error) {
	out := make([]fleet.RunContext, len(names))
	for i, name := range names {
		switch name {
		case "Discovery":
			out[i] = fleet.ContextDiscovery
		case "Cleanup":
			out[i] = fleet.ContextCleanup
		case "OnDemand":
			out[i] = fleet.ContextOnDemand
		default:
			return nil, fmt.Errorf("%q is no context", name)
		}
	}
	return out, nil
}

// platforms brings platform keys into the form that machines have, each once.
func platforms(keys []string) []string {
	out := make([]string, 0, len(keys))
	for _, key := range keys {
		if key = fleet.Platform(key); !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// given is nil for what the file leaves empty: an empty program is none.
func given(text *string) *string {
	if text == nil || *text == "" {
		return nil
	}
	return text
}

func list(words []string) []string {
	if words == nil {
		return []string{}
	}
	return words
}

func readCatalog() ([]builtIn, error) {
	var file struct {
		Tests []builtIn `json:"tests"`
	}
	if err := json.Unmarshal(catalogFile, &file); err != nil {
		return nil, fmt.Errorf("the built-in catalog: %w", err)
	}
	return file.Tests, nil
}

// AddCatalog gives a site the built-in tests that it does not have yet, which for a new
// one is all of them.
func (s *Service) AddCatalog(ctx context.Context, tx *ent.Client, siteID string) error {
	tests, err := readCatalog()
	if err != nil {
		return err
	}
	present, err := tx.ValidationTest.Query().Where(validationtest.SiteID(siteID)).Select(validationtest.FieldTestKey).Strings(ctx)
	if err != nil {
		return err
	}
	var rows []*ent.ValidationTestCreate
	for _, test := range tests {
		if slices.Contains(present, fleet.TestKey(test.TestID)) {
			continue
		}
		row, err := s.builtIn(tx, siteID, test)
		if err != nil {
			return fmt.Errorf("the built-in test %s: %w", test.TestID, err)
		}
		rows = append(rows, row)
	}
	return tx.ValidationTest.CreateBulk(rows...).Exec(ctx)
}

func (s *Service) builtIn(tx *ent.Client, siteID string, test builtIn) (*ent.ValidationTestCreate, error) {
	version, err := fleet.ParseTestVersion(test.Version)
	if err != nil {
		return nil, err
	}
	in, err := contexts(test.Contexts)
	if err != nil {
		return nil, err
	}
	now := s.now()
	return tx.ValidationTest.Create().SetSiteID(siteID).SetKind(fleet.TestCatalog).
		SetTestID(test.TestID).SetTestKey(fleet.TestKey(test.TestID)).SetVersion(version.String()).SetVersionNumber(version.Number).
		SetName(test.Name).SetDescription(test.Description).SetContexts(in).SetSupportedPlatforms(platforms(test.SupportedPlatforms)).
		SetTags(list(test.CustomTags)).SetComponents(list(test.Components)).SetTimeoutSeconds(test.Timeout).
		SetEnabled(test.IsEnabled).SetVerified(test.Verified).SetReadOnly(test.ReadOnly).
		SetCommand(test.Command).SetArgs(test.Args).SetNillablePreCondition(given(test.PreCondition)).
		SetNillableImgName(given(test.ImgName)).SetNillableContainerArg(given(test.ContainerArg)).SetExecuteInHost(test.ExecuteInHost).
		SetNillableExternalConfigFile(given(test.ExternalConfigFile)).
		SetNillableExtraOutputFile(given(test.ExtraOutputFile)).SetNillableExtraErrFile(given(test.ExtraErrFile)).
		SetCreatedAt(now).SetModifiedAt(now), nil
}

// CompleteCatalogs gives every site the built-in tests that it does not have yet: sites
// are older than some tests. The lock of its row keeps two processes that start from
// doing so at once.
func (s *Service) CompleteCatalogs(ctx context.Context) error {
	ctx = access.AsSystem(ctx, "catalog")
	sites, err := s.client.Site.Query().IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range sites {
		err := pgdb.InTx(ctx, s.client, func(ctx context.Context, tx *ent.Client) error {
			if _, err := tx.Site.Query().Where(site.ID(id), pgdb.ForNoKeyUpdate).OnlyID(ctx); err != nil {
				return err
			}
			return s.AddCatalog(ctx, tx, id)
		})
		if err != nil {
			return fmt.Errorf("catalog of %s: %w", id, err)
		}
	}
	return nil
}

// CheckTests returns INVALID_ARGUMENT, reason TEST_UNKNOWN, for the first of a site's
// test settings that names no test of its catalog, by its id or its name.
func (s *Service) CheckTests(ctx context.Context, tx *ent.Client, siteID string, settings []fleet.TestSetting) error {
	if len(settings) == 0 {
		return nil
	}
	tests, err := tx.ValidationTest.Query().Where(validationtest.SiteID(siteID), validationtest.KindEQ(fleet.TestCatalog)).
		Select(validationtest.FieldTestKey, validationtest.FieldName).All(ctx)
	if err != nil {
		return err
	}
	for i, setting := range settings {
		if !slices.ContainsFunc(tests, func(t *ent.ValidationTest) bool { return names(setting, t) }) {
			return fleet.Invalid(fmt.Sprintf("machineValidation.tests.%d.id", i), "TEST_UNKNOWN",
				"%s is neither the id nor the name of a test of the site's catalog", fleet.Quoted(setting.ID))
		}
	}
	return nil
}
