package fleet

import "io"

// WorkKind is what a machine's state wants of its host.
type WorkKind string

// The kinds of work.
const (
	WorkRefreshInventory WorkKind = "REFRESH_INVENTORY" // discover the hardware and report it
	WorkReboot           WorkKind = "REBOOT"            // restart the host
	WorkCleanup          WorkKind = "CLEANUP"           // remove what a tenant left
)

// Values lists the kinds, for ent.
func (WorkKind) Values() []string {
	return []string{string(WorkRefreshInventory), string(WorkReboot), string(WorkCleanup)}
}

// MarshalGQL writes the GraphQL form.
func (k WorkKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *WorkKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// WorkOutcome is how a work item ended.
type WorkOutcome string

// The outcomes of work.
const (
	WorkSucceeded  WorkOutcome = "SUCCEEDED"  // done
	WorkFailed     WorkOutcome = "FAILED"     // the agent could not
	WorkSuperseded WorkOutcome = "SUPERSEDED" // no longer wanted
)

// Values lists the outcomes, for ent.
func (WorkOutcome) Values() []string {
	return []string{string(WorkSucceeded), string(WorkFailed), string(WorkSuperseded)}
}

// MarshalGQL writes the GraphQL form.
func (o WorkOutcome) MarshalGQL(w io.Writer) { marshalEnum(w, o) }

// UnmarshalGQL reads the GraphQL form.
func (o *WorkOutcome) UnmarshalGQL(v any) error { return unmarshalEnum(o, v, o.Values()) }

// ClaimKind is what holds a machine for itself.
type ClaimKind string

// The kinds of claim.
const (
	ClaimAllocation ClaimKind = "ALLOCATION"     // it is in an allocation
	ClaimRun        ClaimKind = "VALIDATION_RUN" // a validation run is in progress
	ClaimJob        ClaimKind = "JOB"            // a job works on it
)

// Values lists the kinds, for ent.
func (ClaimKind) Values() []string {
	return []string{string(ClaimAllocation), string(ClaimRun), string(ClaimJob)}
}

// MarshalGQL writes the GraphQL form.
func (k ClaimKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *ClaimKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// RunContext is why a machine is on its way through BOM validation to a validation
// run.
type RunContext string

// The contexts. None, where a person asked for a verification from READY, leads
// back to READY without a run.
const (
	ContextDiscovery RunContext = "DISCOVERY" // the machine is being ingested
	ContextCleanup   RunContext = "CLEANUP"   // it came back from a tenant
	ContextOnDemand  RunContext = "ON_DEMAND" // a person asked for a run
)

// Values lists the contexts, for ent.
func (RunContext) Values() []string {
	return []string{string(ContextDiscovery), string(ContextCleanup), string(ContextOnDemand)}
}

// MarshalGQL writes the GraphQL form.
func (c RunContext) MarshalGQL(w io.Writer) { marshalEnum(w, c) }

// UnmarshalGQL reads the GraphQL form.
func (c *RunContext) UnmarshalGQL(v any) error { return unmarshalEnum(c, v, c.Values()) }
