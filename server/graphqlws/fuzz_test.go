package graphqlws

import (
	"encoding/json"
	"testing"
)

// FuzzMessage holds what strangers send against what is made of it: nothing panics,
// and what the server says in turn is JSON.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{
		``, `{`, `[]`, `null`, `{"type":"connection_init","payload":{"authorization":"Bearer x"}}`, `{"type":"ping","payload":{"a":[1,2.5e9,null]}}`,
		`{"type":"subscribe","id":"1","payload":{"query":"{ a }","variables":{"n":12345678901234567890},"operationName":null,"extensions":{}}}`,
		`{"type":"subscribe","id":"\u0000\"","payload":{"query":""}}`, `{"Type":"ping"}`, `{"type":"complete","id":1}`, `{"type":"ping"} {}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readMessage(data)
		if err != nil {
			return
		}
		if _, err := object(m.Payload); err == nil && !json.Valid(pong(m.Payload)) {
			t.Errorf("no JSON answers %q", data)
		}
		params, err := operation(m.Payload)
		if err != nil || m.ID == nil {
			return
		}
		id, err := json.Marshal(*m.ID)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := json.Marshal(params.Variables)
		if err != nil {
			t.Fatal(err)
		}
		if sent := frame(typeNext, id, answer); !json.Valid(sent) {
			t.Errorf("%q is no JSON", sent)
		}
	})
}
