package server

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"fleetgraph/fleet"
)

// The media types of an answer.
const (
	typeJSON    = "application/json"
	typeGraphQL = "application/graphql-response+json"
	typeEvents  = "text/event-stream"
)

// responseType chooses the media type of an answer by the Accept headers: the one
// of the highest quality, the first of equals, JSON without a header. ok is false
// when the caller accepts neither.
func responseType(accept []string) (mediaType string, ok bool) {
	best := 0.0
	for _, header := range accept {
		for part := range strings.SplitSeq(header, ",") {
			name, attributes, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			if name == "*/*" || name == "application/*" {
				name = typeJSON
			}
			quality := 1.0
			if q, given := attributes["q"]; given {
				if quality, err = strconv.ParseFloat(q, 64); err != nil {
					continue
				}
			}
			if (name == typeJSON || name == typeGraphQL || name == typeEvents) && quality > best {
				best, mediaType = quality, name
			}
		}
	}
	if len(accept) == 0 {
		return typeJSON, true
	}
	return mediaType, mediaType != ""
}

// writeError answers a request that no operation came of.
func writeError(w http.ResponseWriter, status int, err *fleet.Error) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	}
	w.WriteHeader(status)
	writeResponse(w, &graphql.Response{Errors: gqlerror.List{{Message: err.Message, Extensions: extensions(err)}}})
}

// writeResponse writes a response.
func writeResponse(w http.ResponseWriter, response *graphql.Response) {
	_, _ = w.Write(encode(response)) // the caller may be gone
}

// encode is a response as JSON. A request that was refused before its execution has
// no data, not even null (GraphQL specification, 7.1.1).
func encode(response *graphql.Response) []byte {
	var content any = response
	if response.Data == nil {
		content = struct {
			Errors gqlerror.List `json:"errors"`
		}{response.Errors}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // it would make up to six bytes of one, and this is no HTML
	if err := encoder.Encode(content); err != nil {
		//nolint:forbidigo // broken invariant: what gqlgen's marshalers write is JSON; the handler's recover function answers
		panic("the response is not JSON: " + err.Error())
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}
