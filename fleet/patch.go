package fleet

// Patch is a field of an edit. Not Set: the field keeps its value. Set with a nil
// Value: the field is cleared.
type Patch[T any] struct {
	Set   bool
	Value *T
}

// Required returns the value of a patch that cannot be cleared, nil when it is not
// set, and INVALID_ARGUMENT for field when it is cleared.
func (p Patch[T]) Required(field string) (*T, error) {
	if p.Set && p.Value == nil {
		return nil, Invalid(field, "NULL_NOT_ALLOWED", "%s cannot be null; leave it out to keep it", field)
	}
	return p.Value, nil
}

// Or is the value of a patch, or fallback where it is cleared or not set.
func (p Patch[T]) Or(fallback T) T {
	if p.Value == nil {
		return fallback
	}
	return *p.Value
}

// CheckRevision returns ABORTED, reason REVISION_CONFLICT, unless expected is nil or
// the present revision.
func CheckRevision(expected *int, present int) error {
	if expected == nil || *expected == present {
		return nil
	}
	return Conflict("REVISION_CONFLICT", "the object was edited meanwhile: revision %d was expected, %d is present", *expected, present).
		WithDetails(map[string]any{"expected": *expected, "present": present})
}
