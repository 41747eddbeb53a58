package fleet

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// ValidationTestKind is the kind of a validation test. Expect new ones.
type ValidationTestKind string

// The kinds of test.
const (
	TestCatalog ValidationTestKind = "CATALOG" // built in: a host command, or a container of the old kind
)

// Values lists the kinds, for ent.
func (ValidationTestKind) Values() []string { return []string{string(TestCatalog)} }

// MarshalGQL writes the GraphQL form.
func (k ValidationTestKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *ValidationTestKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// TestVersion is the version of a test: a number that grows by one with every
// revision, and when it was made. Order is by number.
type TestVersion struct {
	Number int
	Micros int64 // since 1970, UTC
}

// NewTestVersion is the version with this number, made at a time.
func NewTestVersion(number int, at time.Time) TestVersion {
	return TestVersion{Number: number, Micros: at.UnixMicro()}
}

// String is the form that ParseTestVersion reads.
func (v TestVersion) String() string { return fmt.Sprintf("V%d-T%d", v.Number, v.Micros) }

// ParseTestVersion reads a version such as V1-T1731382251768493; blanks around it do
// not matter, its letters are capitals (the reference, 2.2).
func ParseTestVersion(text string) (TestVersion, error) {
	refused := fmt.Errorf("%s is not a version such as V1-T1731382251768493", Quoted(text))
	number, micros, ok := strings.Cut(strings.TrimSpace(text), "-")
	if !ok || !strings.HasPrefix(number, "V") || !strings.HasPrefix(micros, "T") {
		return TestVersion{}, refused
	}
	n, err := strconv.ParseUint(number[1:], 10, 31)
	if err != nil {
		return TestVersion{}, refused
	}
	m, err := strconv.ParseUint(micros[1:], 10, 63)
	if err != nil || m > math.MaxInt64 {
		return TestVersion{}, refused
	}
	return TestVersion{Number: int(n), Micros: int64(m)}, nil
}

// TestKey is what two ids of tests have in common that are the same but for case.
func TestKey(testID string) string { return asciiLower(testID) }

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// NormaliseRegistry is the form in which a registry's host name is stored and
// compared: lower case, with its port where it has one. INVALID_ARGUMENT for field
// where it is none.
func NormaliseRegistry(field, registry string) (string, error) {
	host := asciiLower(registry)
	if !isRegistry(host) {
		return "", Invalid(field, "REGISTRY_INVALID",
			"%s is not the host name of a registry such as registry.example.com or registry.example.com:5000, without scheme and path", Quoted(registry))
	}
	return host, nil
}

// EnablementCause is what decides whether a test is enabled.
type EnablementCause string

// The causes.
const (
	EnabledByOperator EnablementCause = "OPERATOR"  // the operator's setting of the test
	EnabledBySiteMode EnablementCause = "SITE_MODE" // the site's mode of test selection
	EnabledBySiteTest EnablementCause = "SITE_TEST" // the site's configuration, which names the test
)

// MarshalGQL writes the GraphQL form.
func (c EnablementCause) MarshalGQL(w io.Writer) { marshalEnum(w, c) }

// UnmarshalGQL refuses every value: the graph only returns causes.
func (c *EnablementCause) UnmarshalGQL(v any) error { return unmarshalEnum(c, v, nil) }

// TestExclusion is a rule that excludes a test from a run, in the order in which they
// are looked at (the guide, Test Selection).
type TestExclusion string

// The rules.
const (
	ExcludedValidationDisabled TestExclusion = "VALIDATION_DISABLED" // the site has machine validation switched off
	ExcludedNotEnabled         TestExclusion = "NOT_ENABLED"         // the test is not enabled
	ExcludedNotVerified        TestExclusion = "NOT_VERIFIED"        // nobody has verified it
	ExcludedOtherContext       TestExclusion = "OTHER_CONTEXT"       // it is not for this context
	ExcludedOtherPlatform      TestExclusion = "OTHER_PLATFORM"      // it is not for this platform
	ExcludedOtherTags          TestExclusion = "OTHER_TAGS"          // it has none of the tags
	ExcludedNotAllowed         TestExclusion = "NOT_ALLOWED"         // it is not on the list of those allowed
	ExcludedOtherVersion       TestExclusion = "OTHER_VERSION"       // another version of it is selected
)

// MarshalGQL writes the GraphQL form.
func (e TestExclusion) MarshalGQL(w io.Writer) { marshalEnum(w, e) }

// UnmarshalGQL refuses every value: the graph only returns rules.
func (e *TestExclusion) UnmarshalGQL(v any) error { return unmarshalEnum(e, v, nil) }
