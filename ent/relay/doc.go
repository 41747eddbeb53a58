// Package relay is what the generated connections share: cursors, the rules of a
// page, the selection that a GraphQL operation makes, and the bounds of a filter.
// It knows no entity. The code that ent/template generates calls it, so that the
// templates stay thin and this can be tested without a database.
//
// Every error that a caller's input can cause is a *fleet.Error.
package relay
