// Package events keeps the history of every state transition: append-only rows,
// written in the transaction that makes the change, numbered within their object
// without gaps.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"entgo.io/ent/dialect/sql"

	"fleetgraph/ent"
	"fleetgraph/ent/transition"
	"fleetgraph/fleet"
)

// Transition is one change to record. SiteID is nil for what belongs to no site,
// MachineID for what is no machine's; From and To are nil for objects without
// states. Details must marshal to JSON and must not contain a secret.
type Transition struct {
	SiteID      *string
	SubjectType fleet.SubjectType
	SubjectID   string
	MachineID   *string
	From, To    *string
	Cause       string
	Actor       string
	Message     string
	Details     any
	At          time.Time
}

// Append records t in tx. The caller holds a lock on the subject's row, which
// makes sequence order commit order; ctx must see all of the subject's history.
func Append(ctx context.Context, tx *ent.Client, t Transition) error {
	sequence, err := lastSequence(ctx, tx, t.SubjectID)
	if err != nil {
		return err
	}
	row, err := t.row(tx, sequence+1)
	if err != nil {
		return err
	}
	return row.Exec(ctx)
}

// chunk is how many transitions one statement writes: at most 65535 parameters fit
// into one, and a row has some 15.
const chunk = 1000

// AppendAll is Append for changes to many subjects, each another one, in a few
// statements.
func AppendAll(ctx context.Context, tx *ent.Client, transitions []Transition) error {
	for part := range slices.Chunk(transitions, chunk) {
		ids := make([]string, len(part))
		for i, t := range part {
			ids[i] = t.SubjectID
		}
		last, err := lastSequences(ctx, tx, ids)
		if err != nil {
			return err
		}
		rows := make([]*ent.TransitionCreate, len(part))
		for i, t := range part {
			if rows[i], err = t.row(tx, last[t.SubjectID]+1); err != nil {
				return err
			}
		}
		if err := tx.Transition.CreateBulk(rows...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (t Transition) row(tx *ent.Client, sequence int) (*ent.TransitionCreate, error) {
	var details json.RawMessage
	if t.Details != nil {
		var err error
		if details, err = json.Marshal(t.Details); err != nil {
			return nil, fmt.Errorf("record %s: %w", t.Cause, err)
		}
	}
	return tx.Transition.Create().
		SetNillableSiteID(t.SiteID).SetSubjectType(t.SubjectType).SetSubjectID(t.SubjectID).SetSequence(sequence).
		SetNillableMachineID(t.MachineID).SetNillableFromState(t.From).SetNillableToState(t.To).
		SetCause(t.Cause).SetActor(t.Actor).SetMessage(t.Message).SetDetails(details).SetOccurredAt(t.At), nil
}

// lastSequence is the number of changes recorded for a subject.
func lastSequence(ctx context.Context, tx *ent.Client, subjectID string) (int, error) {
	var last []struct{ Last int }
	err := tx.Transition.Query().
		Modify(func(s *sql.Selector) {
			s.Select(sql.As("coalesce(max("+s.C(transition.FieldSequence)+"), 0)", "last")).
				Where(sql.EQ(s.C(transition.FieldSubjectID), subjectID))
		}).
		Scan(ctx, &last)
	if err != nil {
		return 0, err
	}
	if len(last) != 1 {
		return 0, fmt.Errorf("last sequence of %s: %d rows", subjectID, len(last))
	}
	return last[0].Last, nil
}

// lastSequences is lastSequence for many subjects; one without history is absent.
func lastSequences(ctx context.Context, tx *ent.Client, subjectIDs []string) (map[string]int, error) {
	var rows []struct {
		SubjectID string `json:"subject_id"`
		Last      int    `json:"last"`
	}
	err := tx.Transition.Query().Where(transition.SubjectIDIn(subjectIDs...)).
		GroupBy(transition.FieldSubjectID).Aggregate(ent.As(ent.Max(transition.FieldSequence), "last")).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	last := make(map[string]int, len(rows))
	for _, row := range rows {
		last[row.SubjectID] = row.Last
	}
	return last, nil
}
