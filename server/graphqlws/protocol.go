// Package graphqlws serves operations over WebSockets by the graphql-transport-ws
// protocol (enisdenjo/graphql-ws, PROTOCOL.md), to the letter: what the protocol
// forbids closes the connection with the code that it names.
//
// Invariants: one goroutine writes a connection; what waits for a reader is bounded
// in bytes and in time; every operation of a connection has ended, and every
// goroutine of it, when its request has. It knows nothing of tokens, sites or
// cursors.
package graphqlws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// Subprotocol is the protocol's name in the handshake.
const Subprotocol = "graphql-transport-ws"

// Codes that the server closes connections with: the protocol's own from 4400, those
// of RFC 6455 below.
const (
	codeGoingAway        = 1001 // the server stops
	codeNotUTF8          = 1007
	codeTooLong          = 1009
	codeInternal         = 1011
	codeTryAgain         = 1013 // the reader is too slow: to come back from its last cursor
	codeBadRequest       = 4400
	codeUnauthorized     = 4401 // no connection_init yet, or the token's time is over
	codeForbidden        = 4403 // the connection_init was refused, or the token revoked
	codeBadSubprotocol   = 4406
	codeInitTimeout      = 4408
	codeSubscriberExists = 4409
	codeTooManyInits     = 4429
	codeTerminated       = 4499 // the peer does not answer
)

// Types of messages.
const (
	typeInit      = "connection_init"
	typeAck       = "connection_ack"
	typePing      = "ping"
	typePong      = "pong"
	typeSubscribe = "subscribe"
	typeNext      = "next"
	typeError     = "error"
	typeComplete  = "complete"
)

var (
	frameAck  = []byte(`{"type":"connection_ack"}`)
	framePing = []byte(`{"type":"ping"}`)
)

// message is what a client sends.
type message struct {
	Type    string
	ID      *string
	Payload json.RawMessage
}

var (
	errNotAnObject = errors.New("not a JSON object")
	errNotJSON     = errors.New("not JSON")
)

// readMessage reads one message: a JSON object with nothing after it.
func readMessage(data []byte) (m message, err error) {
	if data = bytes.TrimLeft(data, " \t\r\n"); len(data) == 0 || data[0] != '{' {
		return m, errNotAnObject
	}
	return m, fields(data, map[string]any{"type": &m.Type, "id": &m.ID, "payload": &m.Payload})
}

// fields reads an object's fields by their names to the letter: encoding/json takes
// struct fields in any case. Its errors are for the client.
func fields(data []byte, targets map[string]any) error {
	var all map[string]json.RawMessage
	if decode(data, &all) != nil {
		return errNotJSON
	}
	for name, target := range targets {
		if value, ok := all[name]; ok && decode(value, target) != nil {
			return fmt.Errorf("%q is of the wrong type", name)
		}
	}
	return nil
}

// decode reads one JSON value. Numbers keep their digits.
func decode(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(target); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// isObject tells whether a payload, which is valid JSON, is an object, absent or null.
func isObject(payload json.RawMessage) bool {
	return len(payload) == 0 || payload[0] == '{' || payload[0] == 'n'
}

// object reads a payload that is an object, or is absent or null.
func object(payload json.RawMessage) (out map[string]any, err error) {
	if len(payload) == 0 {
		return nil, nil //nolint:nilnil // nothing was sent
	}
	return out, decode(payload, &out)
}

// operation reads the payload of a subscribe message.
func operation(payload json.RawMessage) (*graphql.RawParams, error) {
	var p struct {
		Query, OperationName  *string
		Variables, Extensions map[string]any
	}
	if len(payload) == 0 || payload[0] != '{' {
		return nil, errNotAnObject
	}
	err := fields(payload, map[string]any{
		"query": &p.Query, "operationName": &p.OperationName, "variables": &p.Variables, "extensions": &p.Extensions,
	})
	if err != nil {
		return nil, err
	}
	if p.Query == nil && p.Extensions == nil {
		return nil, errors.New("no query")
	}
	params := &graphql.RawParams{Variables: p.Variables, Extensions: p.Extensions}
	if p.Query != nil {
		params.Query = *p.Query
	}
	if p.OperationName != nil {
		params.OperationName = *p.OperationName
	}
	return params, nil
}

// frame is a message of the server with a payload that is JSON.
func frame(kind string, id, payload []byte) []byte {
	out := make([]byte, 0, len(id)+len(payload)+40)
	out = append(append(out, `{"id":`...), id...)
	out = append(append(append(out, `,"type":"`...), kind...), '"')
	if payload != nil {
		out = append(append(out, `,"payload":`...), payload...)
	}
	return append(out, '}')
}

// pong answers a ping, with its payload.
func pong(payload json.RawMessage) []byte {
	if len(payload) == 0 {
		return []byte(`{"type":"pong"}`)
	}
	return append(append([]byte(`{"type":"pong","payload":`), payload...), '}')
}
