package lifecycle

import (
	"context"
	"slices"
	"strings"

	"fleetgraph/ent"
	"fleetgraph/ent/healthalert"
	"fleetgraph/fleet"
	"fleetgraph/services/access"
)

// reservedSources are those of alerts that the system raises and clears by itself.
func reservedSources() []string { return []string{"sku-validation", "machine-validation"} }

// RaiseAlert is the input of Service.RaiseAlert.
type RaiseAlert struct {
	MachineID       string
	AlertID         string
	Source          string
	Target          string
	Message         string
	TenantMessage   *string
	Classifications []string
	Key             string `json:"-"`
}

// maxAlerts is how many alerts a machine has at once, beside those of the system.
const maxAlerts = 100

// RaiseAlert raises an alert on a machine and returns its id. One of the same
// alertId, source and target that stands already gets the new text. A machine that
// has maxAlerts is FAILED_PRECONDITION, reason TOO_MANY_ALERTS.
func (s *Service) RaiseAlert(ctx context.Context, in RaiseAlert) (string, error) {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return "", err
	}
	if err := in.check(); err != nil {
		return "", err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "raiseHealthAlert", Key: in.Key, Input: in}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		m, err := Lock(ctx, tx, in.MachineID)
		if err != nil {
			return nil, err
		}
		id, err := s.raise(ctx, tx, m, in)
		if err != nil {
			return nil, err
		}
		return []string{id}, Record(ctx, tx, m, nil, nil, Change{
			Event: fleet.EventAlertRaised, Message: in.Message, At: s.now(),
			Details: map[string]any{"alertId": in.AlertID, "source": in.Source, "target": in.Target, "classifications": in.Classifications},
		})
	})
	if err != nil {
		return "", err
	}
	return out.Result[0], nil
}

func (s *Service) raise(ctx context.Context, tx *ent.Client, m *ent.Machine, in RaiseAlert) (string, error) {
	standing, err := tx.HealthAlert.Query().Where(healthalert.MachineID(m.ID), healthalert.AlertID(in.AlertID),
		healthalert.Source(in.Source), healthalert.Target(in.Target)).Only(ctx)
	if ent.IsNotFound(err) {
		n, err := tx.HealthAlert.Query().Where(healthalert.MachineID(m.ID), healthalert.SourceNotIn(reservedSources()...)).Count(ctx)
		if err != nil {
			return "", err
		}
		if n >= maxAlerts {
			return "", fleet.Precondition("TOO_MANY_ALERTS", "the machine has %d alerts already: clear some, or raise one of them again with its new text", n)
		}
		row, err := tx.HealthAlert.Create().SetSiteID(m.SiteID).SetMachineID(m.ID).
			SetAlertID(in.AlertID).SetSource(in.Source).SetTarget(in.Target).SetMessage(in.Message).
			SetNillableTenantMessage(in.TenantMessage).SetClassifications(in.Classifications).SetInAlertSince(s.now()).Save(ctx)
		if err != nil {
			return "", err
		}
		return row.ID, nil
	}
	if err != nil {
		return "", err
	}
	update := tx.HealthAlert.Update().Where(healthalert.ID(standing.ID)).SetMessage(in.Message).SetClassifications(in.Classifications)
	if in.TenantMessage == nil {
		update.ClearTenantMessage()
	} else {
		update.SetTenantMessage(*in.TenantMessage)
	}
	return standing.ID, update.Exec(ctx)
}

// maxClassifications bounds what one alert may entail.
const maxClassifications = 16

func (in *RaiseAlert) check() error {
	if err := fleet.CheckID("machineId", fleet.PrefixMachine, in.MachineID); err != nil {
		return err
	}
	if err := fleet.CheckName("alertId", in.AlertID); err != nil {
		return err
	}
	if err := fleet.CheckName("source", in.Source); err != nil {
		return err
	}
	if slices.Contains(reservedSources(), in.Source) {
		return fleet.Invalid("source", "SOURCE_RESERVED", "alerts of %q are raised by the system only", in.Source)
	}
	if in.Target != "" {
		if err := fleet.CheckNamed("target", in.Target, 256); err != nil {
			return err
		}
	}
	if err := fleet.CheckText("message", in.Message); err != nil {
		return err
	}
	if strings.TrimSpace(in.Message) == "" {
		return fleet.Invalid("message", "TEXT_INVALID", "an alert says what is wrong")
	}
	if in.TenantMessage != nil {
		if err := fleet.CheckText("tenantMessage", *in.TenantMessage); err != nil {
			return err
		}
	}
	if len(in.Classifications) > maxClassifications {
		return fleet.Invalid("classifications", "LIST_TOO_LONG", "an alert has at most %d classifications", maxClassifications)
	}
	for i, c := range in.Classifications {
		if !isWord(c) || slices.Contains(in.Classifications[:i], c) {
			return fleet.Invalid("classifications", "CLASSIFICATION_INVALID", "%s is not an upper-case word such as %s, or is given twice", fleet.Quoted(c), PreventAllocations)
		}
	}
	if in.Classifications == nil {
		in.Classifications = []string{}
	}
	return nil
}

// isWord tells whether text is upper-case letters, digits and underscores, beginning
// with a letter.
func isWord(text string) bool {
	if text == "" || len(text) > 64 || text[0] < 'A' || text[0] > 'Z' {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

// ClearAlert clears an alert that a person or an outside monitor raised, and returns
// its machine's id. FAILED_PRECONDITION, reason ALERT_OF_SYSTEM, for one that clears
// itself.
func (s *Service) ClearAlert(ctx context.Context, alertID, key string) (machineID string, err error) {
	if _, err := access.Require(ctx, fleet.RoleOperator); err != nil {
		return "", err
	}
	if err := fleet.CheckID("healthAlertId", fleet.PrefixHealthAlert, alertID); err != nil {
		return "", err
	}
	out, err := access.Run(ctx, s.client, access.Mutation{Name: "clearHealthAlert", Key: key, Input: alertID}, func(ctx context.Context, tx *ent.Client) ([]string, error) {
		row, err := tx.HealthAlert.Query().Where(healthalert.ID(alertID)).Only(ctx)
		if ent.IsNotFound(err) {
			return nil, alertMissing(alertID)
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(reservedSources(), row.Source) {
			return nil, fleet.Precondition("ALERT_OF_SYSTEM", "the alert %s of %s clears itself when its reason is gone", row.AlertID, row.Source)
		}
		m, err := Lock(ctx, tx, row.MachineID)
		if err != nil {
			return nil, err
		}
		n, err := tx.HealthAlert.Delete().Where(healthalert.ID(row.ID)).Exec(ctx)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, alertMissing(alertID)
		}
		return []string{m.ID}, Record(ctx, tx, m, nil, nil, Change{
			Event: fleet.EventAlertCleared, At: s.now(),
			Details: map[string]any{"alertId": row.AlertID, "source": row.Source, "target": row.Target},
		})
	})
	if err != nil {
		return "", err
	}
	return out.Result[0], nil
}

func alertMissing(id string) error {
	return fleet.Missing("healthAlertId", "ALERT_NOT_FOUND", "health alert not found: %s", id)
}
