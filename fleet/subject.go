package fleet

import "io"

// SubjectType is the type of object that a transition happened to.
type SubjectType string

// The types of subject.
const (
	SubjectSite    SubjectType = "SITE"    // a site
	SubjectSku     SubjectType = "SKU"     // a SKU
	SubjectMachine SubjectType = "MACHINE" // a machine
	SubjectToken   SubjectType = "TOKEN"   // a token

	SubjectExpectedMachine SubjectType = "EXPECTED_MACHINE" // an expected machine
	SubjectAllocation      SubjectType = "ALLOCATION"       // an allocation
	SubjectJob             SubjectType = "JOB"              // a job
	SubjectValidationTest  SubjectType = "VALIDATION_TEST"  // a version of a validation test
)

// Values lists the subject types, for ent.
func (SubjectType) Values() []string {
	return []string{
		string(SubjectSite), string(SubjectSku), string(SubjectMachine), string(SubjectToken),
		string(SubjectExpectedMachine), string(SubjectAllocation), string(SubjectJob), string(SubjectValidationTest),
	}
}

// MarshalGQL writes the GraphQL form.
func (s SubjectType) MarshalGQL(w io.Writer) { marshalEnum(w, s) }

// UnmarshalGQL reads the GraphQL form.
func (s *SubjectType) UnmarshalGQL(v any) error { return unmarshalEnum(s, v, s.Values()) }
