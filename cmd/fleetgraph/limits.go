package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"fleetgraph/server"
)

// limitPrefix begins the flags of what one request may use.
const limitPrefix = "limit-"

func addLimits(flags *pflag.FlagSet, l *server.Limits) {
	d := server.DefaultLimits()
	flags.Int64Var(&l.BodyBytes, limitPrefix+"body-bytes", d.BodyBytes, "bytes of an HTTP request")
	flags.IntVar(&l.DocumentBytes, limitPrefix+"document-bytes", d.DocumentBytes, "bytes of a GraphQL document")
	flags.IntVar(&l.DocumentTokens, limitPrefix+"document-tokens", d.DocumentTokens, "tokens of a document; and its nodes, with its fragments written out")
	flags.IntVar(&l.Definitions, limitPrefix+"definitions", d.Definitions, "operations and fragments of a document")
	flags.IntVar(&l.Depth, limitPrefix+"depth", d.Depth, "fields within fields")
	flags.IntVar(&l.RootFields, limitPrefix+"root-fields", d.RootFields, "root fields of an operation")
	flags.IntVar(&l.Aliases, limitPrefix+"aliases", d.Aliases, "aliases of an operation")
	flags.IntVar(&l.Directives, limitPrefix+"directives", d.Directives, "directives of an operation")
	flags.IntVar(&l.Complexity, limitPrefix+"complexity", d.Complexity, "complexity of an operation: 1 a field, multiplied by the pages and lists that it is in")
	flags.IntVar(&l.ValueDepth, limitPrefix+"value-depth", d.ValueDepth, "lists and objects within each other, in a literal or in the variables")
	flags.IntVar(&l.VariableValues, limitPrefix+"variable-values", d.VariableValues, "values in the variables of an operation")
	flags.DurationVar(&l.OperationTimeout, limitPrefix+"operation-time", d.OperationTimeout, "time of an operation")
}

// checkLimits refuses limits that let nothing through.
func checkLimits(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		value := flag.Value.String()
		if err == nil && strings.HasPrefix(flag.Name, limitPrefix) && (strings.HasPrefix(value, "-") || value == "0" || value == "0s") {
			err = &usageError{fmt.Errorf("--%s: %s is not a limit; there is no way to have none, but a large number", flag.Name, value)}
		}
	})
	return err
}
