package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
)

// The shape of one SKU's components with one part replaced.
func components(part string) string {
	return `{chassis:{vendor:"v",model:"m",architecture:"x86_64"},` + part + `}`
}

func TestErrorNamesTheLiteralInput(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	createSku := func(rest string) string {
		return `mutation{createSku(input:{siteId:"s",name:"n",components:` + rest + `}){sku{id}}}`
	}
	for name, c := range map[string]struct{ query, field string }{
		"input is missing":                   {`mutation{createSite{site{id}}}`, "input"},
		"input is null":                      {`mutation{createSite(input:null){site{id}}}`, "input"},
		"input is a string":                  {`mutation{createSite(input:"x"){site{id}}}`, "input"},
		"field is missing":                   {`mutation{createSite(input:{}){site{id}}}`, "name"},
		"field is null":                      {`mutation{createSite(input:{name:null}){site{id}}}`, "name"},
		"field is of the wrong type":         {`mutation{createSite(input:{name:7}){site{id}}}`, "name"},
		"field is unknown":                   {`mutation{createSite(input:{name:"a",nam:"b"}){site{id}}}`, "nam"},
		"field is given twice":               {`mutation{createSite(input:{name:"a",name:"b"}){site{id}}}`, "name"},
		"second of two missing fields":       {`mutation{assignSku(input:{machineId:"m"}){machine{id}}}`, "skuId"},
		"nested field is missing":            {createSku(`{chassis:{vendor:"v",model:"m"}}`), "components.chassis.architecture"},
		"element of a list of a list":        {createSku(components(`storage:[{count:1,pciPatterns:["a",2]}]`)), "components.storage.0.pciPatterns.1"},
		"field of an element":                {createSku(components(`storage:[{count:1,minSizeMb:1},{minSizeMb:1}]`)), "components.storage.1.count"},
		"number out of range, custom scalar": {createSku(components(`storage:[{count:1,minSizeMb:99999999999999999999}]`)), "components.storage.0.minSizeMb"},
		"Int beyond 32 bits":                 {`{explainSku(machineId:"m",first:2147483648){distance}}`, "first"},
		"argument outside input":             {`{explainSku(machineId:"m",first:"x"){distance}}`, "first"},
		"argument is missing":                {`{explainSku(first:1){distance}}`, "machineId"},
		"argument is unknown":                {`{explainSku(machineId:"m",last:1){distance}}`, "last"},
		"filter":                             {`{machines(where:{and:[{nameIn:[1]}]}){totalCount}}`, "where.and.0.nameIn.0"},
		"enum":                               {`{machines(orderBy:{field:COLOUR}){totalCount}}`, "orderBy.field"},
		"within a fragment":                  {`{...q} fragment q on Query{explainSku(machineId:1.5){distance}}`, "machineId"},
		"variable of the wrong type":         {`mutation($n:Int!){createSite(input:{name:$n}){site{id}}}`, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.run(t, c.query, `{"n":1}`)
			got.requireError(t, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", c.field)
			require.NotEmpty(t, got.Errors[0].Locations)
		})
	}
}

func TestErrorNamesTheVariableInput(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	createSite := `mutation($i:CreateSiteInput!){createSite(input:$i){site{id}}}`
	createSku := `mutation($input:CreateSkuInput!){createSku(input:$input){sku{id}}}`
	sku := func(part string) string {
		return `{"input":{"siteId":"s","name":"n","components":{"chassis":{"vendor":"v","model":"m","architecture":"a"},` + part + `}}}`
	}
	for name, c := range map[string]struct{ query, variables, reason, field string }{
		"variable is missing":          {createSite, `{}`, "GRAPHQL_VALIDATION_FAILED", "input"},
		"field is missing":             {createSite, `{"i":{}}`, "GRAPHQL_VALIDATION_FAILED", "name"},
		"field is null":                {createSite, `{"i":{"name":null}}`, "GRAPHQL_VALIDATION_FAILED", "name"},
		"field is of the wrong type":   {createSite, `{"i":{"name":{}}}`, "GRAPHQL_VALIDATION_FAILED", "name"},
		"field is unknown":             {createSite, `{"i":{"name":"a","nam":1}}`, "GRAPHQL_VALIDATION_FAILED", "nam"},
		"element of a list of a list":  {createSku, sku(`"storage":[{"count":1,"pciPatterns":["a",2]}]`), "GRAPHQL_VALIDATION_FAILED", "components.storage.0.pciPatterns.1"},
		"number for a string":          {createSite, `{"i":{"name":7}}`, "GRAPHQL_VALIDATION_FAILED", "name"},
		"string for a number":          {createSku, sku(`"storage":[{"count":"1"}]`), "GRAPHQL_VALIDATION_FAILED", "components.storage.0.count"},
		"fraction for an Int":          {createSku, sku(`"storage":[{"count":1.5}]`), "GRAPHQL_VALIDATION_FAILED", "components.storage.0.count"},
		"Int beyond 32 bits":           {`query($n:Int){explainSku(machineId:"m",first:$n){distance}}`, `{"n":2147483648}`, "GRAPHQL_VALIDATION_FAILED", "first"},
		"Int beyond 64 bits":           {`query($n:Int){explainSku(machineId:"m",first:$n){distance}}`, `{"n":99999999999999999999}`, "GRAPHQL_VALIDATION_FAILED", "first"},
		"string for a Boolean":         {`mutation($i:AssignSkuInput!){assignSku(input:$i){machine{id}}}`, `{"i":{"machineId":"m","skuId":"s","force":"true"}}`, "GRAPHQL_VALIDATION_FAILED", "force"},
		"fraction for an ID":           {`query($m:ID!){explainSku(machineId:$m){distance}}`, `{"m":1.5}`, "GRAPHQL_VALIDATION_FAILED", "machineId"},
		"null in a list":               {createSku, sku(`"cpus":[null]`), "GRAPHQL_VALIDATION_FAILED", "components.cpus.0"},
		"scalar of ours, fraction":     {createSku, sku(`"storage":[{"count":1,"minSizeMb":1.5}]`), "VALUE_INVALID", "components.storage.0.minSizeMb"},
		"scalar of ours, out of range": {createSku, sku(`"storage":[{"count":1,"maxSizeMb":9007199254740992}]`), "VALUE_INVALID", "components.storage.0.maxSizeMb"},
		"variable inside the input":    {`mutation($n:String!){createSite(input:{name:$n}){site{id}}}`, `{"n":[1]}`, "GRAPHQL_VALIDATION_FAILED", "name"},
		"enum":                         {`query($o:MachineOrder){machines(orderBy:$o){totalCount}}`, `{"o":{"field":"COLOUR"}}`, "GRAPHQL_VALIDATION_FAILED", "orderBy.field"},
		"time":                         {`query($w:MachineWhereInput){machines(where:$w){totalCount}}`, `{"w":{"createdAtGT":"yesterday"}}`, "VALUE_INVALID", "where.createdAtGT"},
		"time in a list in a list":     {`query($w:MachineWhereInput){machines(where:$w){totalCount}}`, `{"w":{"or":[{"createdAtIn":["2026-01-01T00:00:00Z","x"]}]}}`, "VALUE_INVALID", "where.or.0.createdAtIn.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.run(t, c.query, c.variables)
			got.requireError(t, "INVALID_ARGUMENT", c.reason, c.field)
		})
	}
}

func TestAVariableOfTheWrongTypeIsToldOfInTheWordsOfTheGraph(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	explain, where := `query($n:Int){explainSku(machineId:"m",first:$n){distance}}`, `query($n:MachineWhereInput){machines(where:$n){totalCount}}`
	for variables, want := range map[string]struct{ query, message string }{
		`{"n":1e999999999}`:           {explain, "first: this is not of type Int"},
		`{"n":1.5}`:                   {explain, "first: this is not of type Int"},
		`{"n":99999999999999999999}`:  {explain, "first: this is not of type Int"},
		`{"n":2147483648}`:            {explain, "first: this is not of type Int"},
		`{"n":"1"}`:                   {explain, "first: this is not of type Int"},
		`{"n":{}}`:                    {explain, "first: this is not of type Int"},
		`{"n":[1,2]}`:                 {explain, "first: this is not of type Int"},
		`{"n":"x"}`:                   {where, "where: this is not of type MachineWhereInput"},
		`{"n":{"name":{"a":1}}}`:      {where, "where.name: this is not of type String"},
		`{"n":{"stateIn":[1.5]}}`:     {where, "where.stateIn.0: 1.5 is not a valid MachineState"},
		`{"n":{"createdAtGT":1e999}}`: {where, ""},
	} {
		got := b.run(t, want.query, variables)
		require.Len(t, got.Errors, 1, got.body)
		if want.message != "" {
			require.Equal(t, want.message, got.Errors[0].Message, variables)
		}
		for _, internal := range []string{"float64", "int64", "slice", "map", "json.", "interface", "struct"} {
			require.NotContains(t, got.Errors[0].Message, internal, variables)
		}
	}
}

func TestLiteralOfOurScalarsIsRefusedLikeAVariable(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.run(t, `{machines(where:{createdAtGT:"yesterday"}){totalCount}}`, "")
	got.requireError(t, "INVALID_ARGUMENT", "VALUE_INVALID", "where.createdAtGT")
	require.Equal(t, []any{"machines"}, got.Errors[0].Path)
	require.Equal(t, `"yesterday" is not an RFC 3339 time`, got.Errors[0].Message)
	got = b.run(t, `mutation{createSku(input:{siteId:"s",name:"n",components:`+components(`storage:[{count:1,minSizeMb:1.5}]`)+`}){sku{id}}}`, "")
	got.requireError(t, "INVALID_ARGUMENT", "VALUE_INVALID", "components.storage.0.minSizeMb")
}

func TestVariablesThatTheSpecificationAllowsPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	query := `query($m:ID!,$n:Int=3){explainSku(machineId:$m,first:$n){distance}}`
	for _, variables := range []string{`{"m":"a","n":1}`, `{"m":7}`, `{"m":"a","n":null}`, `{"m":"a","n":-2147483648}`, `{"m":"a","other":1}`} {
		got := b.run(t, query, variables)
		require.JSONEq(t, `{"data":{"explainSku":[]}}`, got.body, variables)
	}
}

func TestDocumentThatDoesNotParse(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{DocumentTokens: 100}, nil)
	got := b.run(t, `{viewer{`, "")
	got.requireError(t, "INVALID_ARGUMENT", "GRAPHQL_PARSE_FAILED", "")
	require.NotEmpty(t, got.Errors[0].Locations)
	got = b.run(t, "{"+strings.Repeat("viewer{name} ", 100)+"}", "")
	got.requireError(t, "RESOURCE_EXHAUSTED", "DOCUMENT_TOO_LARGE", "")
	got = b.run(t, `query A{viewer{name}} query B{viewer{name}}`, "")
	got.requireError(t, "INVALID_ARGUMENT", "GRAPHQL_VALIDATION_FAILED", "")
}

func TestFaultsOfOneDocumentAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.run(t, "{"+strings.Repeat("nothing ", 500)+"}", "")
	require.LessOrEqual(t, len(got.Errors), maxRefusals)
}

func TestErrorOfAServiceIsShownWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, Limits{}, nil)
	got := b.run(t, `{site(name:"x"){id}}`, "")
	require.Equal(t, http.StatusOK, got.status)
	got.requireError(t, "NOT_FOUND", "SITE_NOT_FOUND", "name")
	require.Equal(t, "no such site", got.Errors[0].Message)
	require.Equal(t, map[string]any{"count": 0.0}, got.Errors[0].Extensions["details"])
	require.Equal(t, []any{"site"}, got.Errors[0].Path)
	require.NotEmpty(t, got.Errors[0].Locations)
}

func TestPresenterShowsOnlyWhatIsMeantForCallers(t *testing.T) {
	t.Parallel()
	p := presenter{slog.New(slog.DiscardHandler)}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx          context.Context //nolint:containedctx // an input of the case
		err          error
		code         fleet.Code
		reason, text string
	}{
		"wrapped error of ours": {t.Context(), fmt.Errorf("x: %w", fleet.Conflict("R", "lost")), fleet.Aborted, "R", "lost"},
		"internal of ours":      {t.Context(), &fleet.Error{Code: fleet.Internal, Message: "SELECT"}, fleet.Internal, "INTERNAL", "internal error"},
		"unknown":               {t.Context(), io.ErrUnexpectedEOF, fleet.Unavailable, "DATABASE_UNAVAILABLE", "the database does not answer; try again"},
		"unknown of gqlgen":     {t.Context(), gqlerror.Errorf("/etc/passwd"), fleet.Internal, "INTERNAL", "internal error"},
		"of Postgres":           {t.Context(), &pgconn.PgError{Code: "42P01", Message: "relation"}, fleet.Internal, "INTERNAL", "internal error"},
		"Postgres is stopping":  {t.Context(), &pgconn.PgError{Code: "57P01"}, fleet.Unavailable, "DATABASE_UNAVAILABLE", "the database does not answer; try again"},
		"deadlock":              {t.Context(), &pgconn.PgError{Code: "40P01"}, fleet.Aborted, "CONTENTION", "too many changes to the same objects at once; try again"},
		"deadline":              {t.Context(), fmt.Errorf("q: %w", context.DeadlineExceeded), fleet.Unavailable, "TIMEOUT", "the operation was cut off before it ended"},
		"context has ended":     {ended, errors.New("closed"), fleet.Unavailable, "TIMEOUT", "the operation was cut off before it ended"},
	} {
		got := p.present(c.ctx, c.err)
		require.Equal(t, c.text, got.Message, name)
		require.Equal(t, c.code, got.Extensions["code"], name)
		require.Equal(t, c.reason, got.Extensions["reason"], name)
	}
}
