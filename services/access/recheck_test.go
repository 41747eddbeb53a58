package access_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"fleetgraph/ent"
	"fleetgraph/fleet"
	"fleetgraph/internal/openid"
	"fleetgraph/internal/openid/openidtest"
	"fleetgraph/internal/pgdb"
	"fleetgraph/internal/testdb"
	"fleetgraph/migrate"
	"fleetgraph/services/access"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m, migrate.ApplyURL)) }

// bundle is the service on a database of its own, with a clock that a test moves.
type bundle struct {
	*access.Service
	issuer *openidtest.Provider
	ahead  atomic.Int64
	admin  context.Context //nolint:containedctx // the caller of the whole test
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db, err := pgdb.Open(t.Context(), testdb.New(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	client := ent.NewClient(ent.Driver(db.Driver()))
	access.Intercept(client)
	b := &bundle{issuer: openidtest.New(t), admin: access.AsSystem(t.Context(), "test")}
	now := func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }
	b.Service = access.New(client, now, access.Issuer{
		Issuer: openid.New(b.issuer.URL, openidtest.Audience, now), NameClaims: []string{"sub"},
		Grants: []access.Grant{{Claim: "sub", Value: "olga", Role: fleet.RoleViewer, Sites: []string{access.AnySite}}},
	})
	return b
}

func (b *bundle) caller(t *testing.T, secret string) *access.Caller {
	t.Helper()
	c, err := b.Authenticate(t.Context(), secret)
	require.NoError(t, err)
	require.NoError(t, b.Recheck(t.Context(), c))
	return c
}

func requireReason(t *testing.T, reason string, err error) {
	t.Helper()
	refused, ok := fleet.AsError(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []string{string(fleet.Unauthenticated), reason}, []string{string(refused.Code), refused.Reason})
}

func TestACallerStandsUntilTheirTokenIsRevokedOrOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	issue := func(name string, expires *time.Duration) (id, secret string) {
		id, secret, err := b.Issue(b.admin, access.IssueToken{Name: name, Role: fleet.RoleViewer, ExpiresIn: expires})
		require.NoError(t, err)
		return id, secret
	}
	id, secret := issue("revoked", nil)
	revoked := b.caller(t, secret)
	_, secret = issue("over", new(time.Hour))
	over := b.caller(t, secret)
	_, secret = issue("other", nil)
	other := b.caller(t, secret)

	_, err := b.Revoke(b.admin, id, "")
	require.NoError(t, err)
	requireReason(t, "TOKEN_REVOKED", b.Recheck(t.Context(), revoked))
	b.ahead.Store(int64(59 * time.Minute))
	require.NoError(t, b.Recheck(t.Context(), over))
	b.ahead.Store(int64(61 * time.Minute))
	requireReason(t, "TOKEN_EXPIRED", b.Recheck(t.Context(), over))
	require.NoError(t, b.Recheck(t.Context(), other))
	requireReason(t, "TOKEN_REVOKED", b.Recheck(t.Context(), &access.Caller{TokenID: fleet.NewID(fleet.PrefixToken)}))
	system, ok := access.From(b.admin)
	require.True(t, ok)
	require.NoError(t, b.Recheck(t.Context(), system))
}

func TestACallerByOIDCStandsUntilTheirTokenIsOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.caller(t, b.issuer.Token(t, "olga", map[string]any{"exp": time.Now().Add(time.Minute).Unix()}))
	b.issuer.Stop() // nothing is asked of it
	b.ahead.Store(int64(time.Minute + openid.Leeway - 5*time.Second))
	require.NoError(t, b.Recheck(t.Context(), c))
	b.ahead.Store(int64(time.Minute + openid.Leeway + 5*time.Second))
	requireReason(t, "TOKEN_EXPIRED", b.Recheck(t.Context(), c))
}
