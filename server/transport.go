package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
	"fleetgraph/server/graphqlws"
)

// httpTransport serves POST and GET by the GraphQL-over-HTTP specification. gqlgen
// has transports of its own; theirs answer a request that they cannot read with
// errors that carry no code, repeat its body to the caller, and use status 422 for
// application/json where the specification wants 200.
//
// It takes every request, so it comes last.
type httpTransport struct {
	refuser refuser
	limits  Limits
	answers *answers
}

var _ graphql.Transport = httpTransport{}

// Supports is gqlgen's question whether a request is for this transport.
func (httpTransport) Supports(*http.Request) bool { return true }

// Do answers one request.
func (t httpTransport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	mediaType, ok := responseType(r.Header.Values("Accept"))
	if !ok {
		writeError(w, http.StatusNotAcceptable, fleet.Invalid("", "NOT_ACCEPTABLE", "the answer is %s or %s", typeGraphQL, typeJSON))
		return
	}
	w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
	params := &graphql.RawParams{Headers: r.Header, ReadTime: graphql.TraceTiming{Start: graphql.Now()}}
	status, err := t.read(w, r, params)
	if err != nil {
		writeError(w, status, err)
		return
	}
	params.ReadTime.End = graphql.Now()

	ctx, cancel := context.WithTimeout(r.Context(), t.limits.OperationTimeout)
	defer cancel()
	op, refused := create(ctx, exec, params)
	noteOperation(ctx, op)
	if refused == nil && r.Method == http.MethodGet && op.Operation.Operation != ast.Query {
		w.Header().Set("Allow", "POST")
		writeError(w, http.StatusMethodNotAllowed, fleet.Invalid("", "METHOD_NOT_ALLOWED", "a GET request runs queries only"))
		return
	}
	if refused == nil && op.Operation.Operation == ast.Subscription {
		refused = gqlerror.List{gqlerror.Wrap(fleet.Invalid("", "TRANSPORT_UNSUPPORTED",
			"a subscription needs a stream: a WebSocket of %s, or Accept: %s", graphqlws.Subprotocol, typeEvents))}
	}
	if refused != nil {
		if mediaType == typeGraphQL {
			w.WriteHeader(http.StatusBadRequest)
		}
		writeResponse(w, exec.DispatchError(graphql.WithOperationContext(ctx, op), t.refuser.refusals(op, refused)))
		return
	}
	if op.Operation.Operation != ast.Query {
		uncompressed(w) // one of them answers with a secret, beside what the caller sent
	}
	response, release := t.answers.make(ctx, exec, op)
	defer release()
	if response == nil {
		response = exec.DispatchError(graphql.WithOperationContext(ctx, op), gqlerror.List{gqlerror.Wrap(timedOut())})
	}
	writeResponse(w, response)
}

// create is the executor's, with the text of an operation that was refused before it
// was looked at: the audit reads it.
func create(ctx context.Context, exec graphql.GraphExecutor, params *graphql.RawParams) (*graphql.OperationContext, gqlerror.List) {
	op, refused := exec.CreateOperationContext(ctx, params)
	if op.RawQuery == "" {
		op.RawQuery, op.OperationName = params.Query, params.OperationName
	}
	return op, refused
}

// read fills params from the request. With an error it returns the status to answer
// with.
func (t httpTransport) read(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) (int, *fleet.Error) {
	switch r.Method {
	case http.MethodGet:
		return readURL(r.URL.RawQuery, params)
	case http.MethodPost:
		return t.readBody(w, r, params)
	default:
		w.Header().Set("Allow", "GET, POST, OPTIONS")
		return http.StatusMethodNotAllowed, fleet.Invalid("", "METHOD_NOT_ALLOWED", "the graph answers GET and POST")
	}
}

func (t httpTransport) readBody(w http.ResponseWriter, r *http.Request, params *graphql.RawParams) (int, *fleet.Error) {
	mediaType, attributes, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := attributes["charset"]
	if err != nil || mediaType != typeJSON || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
		return http.StatusUnsupportedMediaType,
			fleet.Invalid("", "CONTENT_TYPE_UNSUPPORTED", "a request is %s in UTF-8", typeJSON)
	}
	body, err := t.readAll(w, r)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		w.Header().Set("Connection", "close") // what follows is not read
		return http.StatusRequestEntityTooLarge, &fleet.Error{
			Code: fleet.ResourceExhausted, Reason: "REQUEST_TOO_LARGE", Message: "the request is too large",
			Details: map[string]any{"limitBytes": t.limits.BodyBytes},
		}
	case err != nil:
		return http.StatusBadRequest, fleet.Invalid("", "REQUEST_INCOMPLETE", "the request ended before its end")
	}
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return http.StatusBadRequest, fleet.Invalid("", "BATCHING_UNSUPPORTED", "a request is one operation, not a list of them")
	}
	if refused := t.limits.checkRequest(body); refused != nil {
		return http.StatusBadRequest, refused
	}
	var request struct {
		Query         *string        `json:"query"`
		OperationName *string        `json:"operationName"`
		Variables     map[string]any `json:"variables"`
		Extensions    map[string]any `json:"extensions"`
	}
	if refusal := decode(body, &request); refusal != nil {
		return http.StatusBadRequest, refusal
	}
	params.Variables, params.Extensions = request.Variables, request.Extensions
	if request.Query != nil {
		params.Query = *request.Query
	}
	if request.OperationName != nil {
		params.OperationName = *request.OperationName
	}
	return requireQuery(params)
}

// readAll reads the body, nothing of one that says it is too large.
func (t httpTransport) readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > t.limits.BodyBytes {
		return nil, &http.MaxBytesError{Limit: t.limits.BodyBytes}
	}
	var body bytes.Buffer // which grows with what arrives: what a request says of its length costs its caller nothing
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, t.limits.BodyBytes))
	return body.Bytes(), err
}

func readURL(rawQuery string, params *graphql.RawParams) (int, *fleet.Error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return http.StatusBadRequest, fleet.Invalid("", "REQUEST_MALFORMED", "the query string is malformed")
	}
	params.Query, params.OperationName = query.Get("query"), query.Get("operationName")
	for name, target := range map[string]*map[string]any{"variables": &params.Variables, "extensions": &params.Extensions} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		if refusal := decode([]byte(text), target); refusal != nil {
			return http.StatusBadRequest, fleet.Invalid(name, "REQUEST_MALFORMED", "%s is not a JSON object", name)
		}
	}
	return requireQuery(params)
}

// requireQuery refuses a request that has neither a document nor the hash of one.
func requireQuery(params *graphql.RawParams) (int, *fleet.Error) {
	if params.Query == "" && params.Extensions[persistedKey] == nil {
		return http.StatusBadRequest, queryMissing()
	}
	return 0, nil
}

// decode reads one JSON value and nothing after it. Numbers keep their digits.
func decode(text []byte, target any) *fleet.Error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(target)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return fleet.Invalid(wrongType.Field, "REQUEST_MALFORMED", "%s is of the wrong type: %s", wrongType.Field, wrongType.Value)
	case errors.As(err, &wrongType):
		return fleet.Invalid("", "REQUEST_MALFORMED", "the request is not a JSON object")
	case err != nil:
		return fleet.Invalid("", "REQUEST_MALFORMED", "the request is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fleet.Invalid("", "REQUEST_MALFORMED", "something follows the JSON value")
	}
	return nil
}

func queryMissing() *fleet.Error {
	return fleet.Invalid("query", "QUERY_MISSING", "the request has no query")
}
