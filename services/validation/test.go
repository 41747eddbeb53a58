package validation

import (
	"context"
	"time"

	"fleetgraph/ent"
	"fleetgraph/ent/validationtest"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/services/access"
	"fleetgraph/services/events"
)

// Verify records that a test was found to be right. A repeat changes nothing.
func (s *Service) Verify(ctx context.Context, testID, key string) error {
	return s.change(ctx, "verifyTest", testID, key, "TEST_VERIFIED", func(c *access.Caller, t *ent.ValidationTest, u *ent.ValidationTestUpdate, now time.Time) (changed bool) {
		if t.Verified {
			return false
		}
		u.SetVerified(true).SetVerifiedAt(now).SetVerifiedBy(c.Name)
		return true
	})
}

// Enable sets whether an operator wants the test. A repeat changes nothing.
func (s *Service) Enable(ctx context.Context, testID string, enabled bool, key string) error {
	mutation, cause := "enableTest", "TEST_ENABLED"
	if !enabled {
		mutation, cause = "disableTest", "TEST_DISABLED"
	}
	return s.change(ctx, mutation, testID, key, cause, func(_ *access.Caller, t *ent.ValidationTest, u *ent.ValidationTestUpdate, _ time.Time) (changed bool) {
		u.SetEnabled(enabled)
		return t.Enabled != enabled
	})
}

// change edits what an administrator says of a test, and records it: NOT_FOUND, reason
// TEST_NOT_FOUND, where there is none that the caller may see.
func (s *Service) change(ctx context.Context, mutation, testID, key, cause string, edit func(*access.Caller, *ent.ValidationTest, *ent.ValidationTestUpdate, time.Time) (changed bool)) error {
	c, err := access.Require(ctx, fleet.RoleAdmin)
	if err != nil {
		return err
	}
	if err := fleet.CheckID("validationTestId", fleet.PrefixValidationTest, testID); err != nil {
		return err
	}
	_, err = access.Run(ctx, s.client, access.Mutation{Name: mutation, Key: key, Input: testID}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		t, err := tx.ValidationTest.Query().Where(validationtest.ID(testID), pgdb.ForNoKeyUpdate).Only(ctx)
		if ent.IsNotFound(err) {
			return nil, fleet.Missing("validationTestId", "TEST_NOT_FOUND", "validation test not found: %s", testID)
		}
		if err != nil {
			return nil, err
		}
		now := s.now()
		update := tx.ValidationTest.Update().Where(validationtest.ID(t.ID)).SetModifiedAt(now).SetModifiedBy(c.Name)
		if !edit(c, t, update, now) {
			return []string{t.ID}, nil
		}
		if err := update.Exec(ctx); err != nil {
			return nil, err
		}
		return []string{t.ID}, events.Append(ctx, tx, events.Transition{
			SiteID: &t.SiteID, SubjectType: fleet.SubjectValidationTest, SubjectID: t.ID,
			Cause: cause, Actor: c.Name, At: now, Details: map[string]any{"testId": t.TestID, "version": t.Version},
		})
	})
	return err
}
