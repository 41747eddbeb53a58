package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"fleetgraph/server"
	"fleetgraph/server/graphqlws"
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
	flags.IntVar(&l.Complexity, limitPrefix+"complexity", d.Complexity, "complexity of an operation: 1 a field, 2000 an inventory, multiplied by the pages and lists that it is in")
	flags.Int64Var(&l.AnswerBytes, limitPrefix+"answer-bytes", d.AnswerBytes, "bytes of one answer")
	flags.IntVar(&l.ValueDepth, limitPrefix+"value-depth", d.ValueDepth, "lists and objects within each other, in a literal or in the variables")
	flags.IntVar(&l.VariableValues, limitPrefix+"variable-values", d.VariableValues, "values in the variables of an operation")
	flags.DurationVar(&l.OperationTimeout, limitPrefix+"operation-time", d.OperationTimeout, "time of an operation")
}

// addCallerLimits adds the flags of what one token may have at one time.
func addCallerLimits(flags *pflag.FlagSet, l *server.CallerLimits) {
	d := server.DefaultCallerLimits()
	flags.IntVar(&l.Streams, limitPrefix+"token-streams", d.Streams, "WebSockets and streams of server-sent events of one token")
	flags.Int64Var(&l.AnswerBytes, limitPrefix+"token-answer-bytes", d.AnswerBytes, "bytes of all answers of one token that are made or wait for their readers")
}

// addSocketLimits adds the flags of what one WebSocket may use. Streams of server-sent
// events share the last two.
func addSocketLimits(flags *pflag.FlagSet, l *graphqlws.Limits) {
	d := graphqlws.DefaultLimits()
	flags.IntVar(&l.Connections, limitPrefix+"sockets", d.Connections, "WebSockets of this process, and as many streams of server-sent events")
	flags.IntVar(&l.Strangers, limitPrefix+"socket-strangers", d.Strangers, "WebSockets that have not brought a token yet")
	flags.IntVar(&l.Unopened, limitPrefix+"socket-unopened", d.Unopened, "WebSockets of one client address that have not brought a token yet, or of one token before connection_init")
	flags.IntVar(&l.Operations, limitPrefix+"socket-operations", d.Operations, "operations alive at once on a WebSocket")
	flags.Int64Var(&l.MessageBytes, limitPrefix+"socket-message-bytes", d.MessageBytes, "bytes of a client's message")
	flags.IntVar(&l.QueuedBytes, limitPrefix+"socket-queued-bytes", d.QueuedBytes, "bytes that wait for a slow reader")
	flags.DurationVar(&l.InitTimeout, limitPrefix+"socket-init-time", d.InitTimeout, "time from the handshake to connection_init")
	flags.DurationVar(&l.PingInterval, limitPrefix+"socket-ping-interval", d.PingInterval, "time between two pings of the server")
	flags.DurationVar(&l.PongTimeout, limitPrefix+"socket-pong-time", d.PongTimeout, "time for the answer to a ping")
	flags.DurationVar(&l.WriteTimeout, limitPrefix+"stream-write-time", d.WriteTimeout, "time that the reader of a stream may stand still")
	flags.DurationVar(&l.CheckInterval, limitPrefix+"stream-check-interval", d.CheckInterval, "time between two looks whether a stream's token still stands, beside its end and its revocation")
}

// addRate adds the flags of what callers may ask for in a time.
func addRate(flags *pflag.FlagSet, r *server.Rate) {
	d := server.DefaultRate()
	flags.Float64Var(&r.Operations, "rate-limit", d.Operations, "operations of one token, a second; 0 for no limit")
	flags.IntVar(&r.Burst, "rate-burst", d.Burst, "operations of one token, at once")
	flags.Float64Var(&r.Failures, "auth-failure-limit", d.Failures, "failed authentications of one client address, a second, beyond which its unknown tokens are looked up a few at a time; 0 for no limit")
}

// checkLimits refuses limits that let nothing through, or stand for none without saying
// so: a limit is a number above 0, and where 0 stands for none, 0.
func checkLimits(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		value := flag.Value.String()
		none := value == "0" || value == "0s"
		endless := strings.HasPrefix(value, "-") || strings.ContainsAny(value, "NI") // NaN, +Inf
		switch {
		case err != nil:
		case strings.HasPrefix(flag.Name, limitPrefix) && (none || endless):
			err = &usageError{fmt.Errorf("--%s: %s is not a limit; there is no way to have none, but a large number", flag.Name, value)}
		case (flag.Name == "rate-limit" || flag.Name == "auth-failure-limit") && endless:
			err = &usageError{fmt.Errorf("--%s: %s is not a limit; 0 stands for none", flag.Name, value)}
		case (flag.Name == "rate-burst" || strings.HasPrefix(flag.Name, "sku-")) && (none || endless):
			err = &usageError{fmt.Errorf("--%s: %s is not a limit", flag.Name, value)}
		}
	})
	return err
}
