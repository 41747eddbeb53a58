package fleet

import "io"

// Component names the part of the hardware that a mismatch, a note or an edit
// concerns.
type Component string

// The components, in reporting order.
const (
	ComponentChassis    Component = "CHASSIS"
	ComponentCPU        Component = "CPU"
	ComponentGPU        Component = "GPU"
	ComponentInfiniband Component = "INFINIBAND"
	ComponentMemory     Component = "MEMORY"
	ComponentStorage    Component = "STORAGE"
	ComponentTPM        Component = "TPM"
)

// Values lists them, in order.
func (Component) Values() []string {
	return []string{string(ComponentChassis), string(ComponentCPU), string(ComponentGPU), string(ComponentInfiniband), string(ComponentMemory), string(ComponentStorage), string(ComponentTPM)}
}

// MarshalGQL writes the GraphQL form.
func (c Component) MarshalGQL(w io.Writer) { marshalEnum(w, c) }

// UnmarshalGQL reads the GraphQL form.
func (c *Component) UnmarshalGQL(v any) error { return unmarshalEnum(c, v, c.Values()) }

// MismatchKind tells how the machine departs from its SKU.
type MismatchKind string

// The kinds of mismatch. Missing: the SKU has it, the machine does not.
// Unexpected: the machine has it, the SKU does not. Different: both have it and
// an attribute differs.
const (
	MismatchMissing    MismatchKind = "MISSING"
	MismatchUnexpected MismatchKind = "UNEXPECTED"
	MismatchDifferent  MismatchKind = "DIFFERENT"
)

// Values lists them, in order.
func (MismatchKind) Values() []string {
	return []string{string(MismatchMissing), string(MismatchUnexpected), string(MismatchDifferent)}
}

// MarshalGQL writes the GraphQL form.
func (k MismatchKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *MismatchKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// Mismatch is one difference between a machine and a SKU, data first. Subject
// names the part within the component (a GPU model, a PCI location), Attribute
// what of it differs (count, version …; empty for a whole part). Expected is nil
// when the kind is UNEXPECTED, Actual is nil when it is MISSING. Hint, when not
// empty, is the likely cause.
type Mismatch struct {
	Component Component    `json:"component"`
	Kind      MismatchKind `json:"kind"`
	Subject   string       `json:"subject,omitempty"`
	Attribute string       `json:"attribute,omitempty"`
	Expected  *string      `json:"expected"`
	Actual    *string      `json:"actual"`
	Message   string       `json:"message"`
	Hint      string       `json:"hint,omitempty"`
}

// Note is something the comparison could not judge; it does not affect the
// result.
type Note struct {
	Component Component `json:"component"`
	Message   string    `json:"message"`
}

// Comparison is the outcome of comparing a machine with a SKU at the SKU's own
// schema version.
type Comparison struct {
	Match      bool       `json:"match"`
	Mismatches []Mismatch `json:"mismatches"`
	Notes      []Note     `json:"notes,omitempty"`
}

// EditAction is what has to be done to a part of the machine.
type EditAction string

// The actions of an edit.
const (
	EditAdd     EditAction = "ADD"
	EditRemove  EditAction = "REMOVE"
	EditReplace EditAction = "REPLACE"
	EditChange  EditAction = "CHANGE"
)

// Values lists them, in order.
func (EditAction) Values() []string {
	return []string{string(EditAdd), string(EditRemove), string(EditReplace), string(EditChange)}
}

// MarshalGQL writes the GraphQL form.
func (a EditAction) MarshalGQL(w io.Writer) { marshalEnum(w, a) }

// UnmarshalGQL reads the GraphQL form.
func (a *EditAction) UnmarshalGQL(v any) error { return unmarshalEnum(a, v, a.Values()) }

// Edit is one change to a machine's hardware that brings it closer to a SKU.
// Count is the number of parts concerned; From and To describe the part before
// and after (nil for ADD and REMOVE respectively).
type Edit struct {
	Component Component  `json:"component"`
	Action    EditAction `json:"action"`
	Subject   string     `json:"subject"`
	Count     int        `json:"count"`
	From      *string    `json:"from"`
	To        *string    `json:"to"`
	Message   string     `json:"message"`
}
