package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"fleetgraph/ent"
	"fleetgraph/ent/idempotencyrecord"
	"fleetgraph/fleet"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/seal"
)

// keyLifetime is how long a key's result is kept: repeats of a lost answer come
// within minutes, and a day covers an unattended retry.
const keyLifetime = 24 * time.Hour

// maxKeyLength bounds an idempotency key, in bytes.
const maxKeyLength = 255

// Mutation is one call of a mutation. Input is what identifies a repeat and must
// marshal to JSON; the key itself does not belong in it. Where Input may hold a
// secret, Box seals its hash, which would let a weak one be guessed.
type Mutation struct {
	Name  string
	Key   string // idempotency key; empty for none
	Input any
	Box   *seal.Box
}

// Outcome is what a mutation returned: ids and words whose order it defines.
// Repeated tells that they were returned before under the same key.
type Outcome struct {
	Result   []string
	Repeated bool
}

// Run runs a mutation in one transaction. With a key, the first committed result
// is kept for 24 hours: the same key with the same input returns it again without
// running fn, with other input it is ALREADY_EXISTS, reason
// IDEMPOTENCY_KEY_REUSED. A failed call leaves no trace. Of two calls at once with
// one key, the second waits for the first.
func Run(ctx context.Context, client *ent.Client, m Mutation, fn func(ctx context.Context, tx *ent.Client) ([]string, error)) (Outcome, error) {
	c, ok := From(ctx)
	if !ok {
		return Outcome{}, Missing()
	}
	if len(m.Key) > maxKeyLength || strings.ContainsFunc(m.Key, unicode.IsControl) {
		return Outcome{}, fleet.Invalid("idempotencyKey", "IDEMPOTENCY_KEY_INVALID",
			"an idempotency key has at most %d bytes, none of them a control character", maxKeyLength)
	}
	var out Outcome
	err := pgdb.InTx(ctx, client, func(ctx context.Context, tx *ent.Client) error {
		out = Outcome{}
		if m.Key == "" {
			var err error
			out.Result, err = fn(ctx, tx)
			return err
		}
		record, err := claim(ctx, tx, c, m)
		if err != nil {
			return err
		}
		if record.Result != nil {
			out = Outcome{Result: record.Result, Repeated: true}
			return nil
		}
		if out.Result, err = fn(ctx, tx); err != nil {
			return err
		}
		return tx.IdempotencyRecord.UpdateOneID(record.ID).SetResult(out.Result).Exec(ctx)
	})
	if err != nil {
		return Outcome{}, err
	}
	return out, nil
}

// claim returns the record of m's key: a fresh one without a result, or the one of
// an earlier call with the same input.
func claim(ctx context.Context, tx *ent.Client, c *Caller, m Mutation) (*ent.IdempotencyRecord, error) {
	body, err := json.Marshal(m.Input)
	if err != nil {
		return nil, fmt.Errorf("hash the input of %s: %w", m.Name, err)
	}
	hash := sha256.Sum256(body)
	ctx = AsSystem(ctx, "idempotency")
	same := idempotencyrecord.And(
		idempotencyrecord.Caller(c.TokenID), idempotencyrecord.Mutation(m.Name), idempotencyrecord.Key(m.Key))
	if _, err := tx.IdempotencyRecord.Delete().
		Where(same, idempotencyrecord.CreatedAtLT(time.Now().Add(-keyLifetime))).Exec(ctx); err != nil {
		return nil, err
	}
	// Waits for another transaction that has inserted the key and not ended yet.
	fresh := fleet.NewID(fleet.PrefixIdempotency)
	stored, err := m.sealed(hash[:], fresh)
	if err != nil {
		return nil, err
	}
	if err := tx.IdempotencyRecord.Create().SetID(fresh).
		SetCaller(c.TokenID).SetMutation(m.Name).SetKey(m.Key).SetInputHash(stored).
		OnConflictColumns(idempotencyrecord.FieldCaller, idempotencyrecord.FieldMutation, idempotencyrecord.FieldKey).
		Ignore().Exec(ctx); err != nil {
		return nil, err
	}
	record, err := tx.IdempotencyRecord.Query().Where(same).Only(ctx)
	if err != nil {
		return nil, err
	}
	if record.ID == fresh {
		return record, nil
	}
	if first, err := m.opened(record); err != nil || !bytes.Equal(first, hash[:]) {
		return nil, fleet.Exists("idempotencyKey", "IDEMPOTENCY_KEY_REUSED",
			"the idempotency key was used before with other input to %s", m.Name)
	}
	return record, nil
}

// sealed is the hash of the input as it is stored in the record of this id.
func (m Mutation) sealed(hash []byte, id string) ([]byte, error) {
	if m.Box == nil {
		return hash, nil
	}
	return m.Box.Seal(hash, []byte(id))
}

// opened is the hash that sealed was given.
func (m Mutation) opened(record *ent.IdempotencyRecord) ([]byte, error) {
	if m.Box == nil {
		return record.InputHash, nil
	}
	return m.Box.Open(record.InputHash, []byte(record.ID))
}

// Sweep forgets the keys whose time is over and returns how many there were.
func Sweep(ctx context.Context, client *ent.Client, now time.Time) (int, error) {
	return client.IdempotencyRecord.Delete().
		Where(idempotencyrecord.CreatedAtLT(now.Add(-keyLifetime))).Exec(AsSystem(ctx, "idempotency"))
}

// SweepKeys forgets the keys whose time is over.
type SweepKeys struct{}

// Kind of the job.
func (SweepKeys) Kind() string { return "idempotency.sweep" }

// SweepKeys does that job.
func (s *Service) SweepKeys(ctx context.Context, _ SweepKeys) error {
	_, err := Sweep(ctx, s.client, s.now())
	return err
}
