package fleet

import (
	"io"
	"slices"
)

// JobKind is the kind of a job.
type JobKind string

// The kinds of jobs.
const (
	JobBulk JobKind = "BULK" // one change of many machines
)

// Values lists the kinds, for ent.
func (JobKind) Values() []string { return []string{string(JobBulk)} }

// MarshalGQL writes the GraphQL form.
func (k JobKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *JobKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// JobState is how far a job is, whatever its kind.
type JobState string

// The states of a job.
const (
	JobPending   JobState = "PENDING"   // submitted, and not begun
	JobRunning   JobState = "RUNNING"   // under way
	JobSucceeded JobState = "SUCCEEDED" // it came to its end; what it could not do to single objects is their result
	JobFailed    JobState = "FAILED"    // it could not go on; its failure says why
	JobCancelled JobState = "CANCELLED" // a person stopped it; what it had done stays
)

// Values lists the states, for ent.
func (JobState) Values() []string {
	return []string{string(JobPending), string(JobRunning), string(JobSucceeded), string(JobFailed), string(JobCancelled)}
}

// MarshalGQL writes the GraphQL form.
func (s JobState) MarshalGQL(w io.Writer) { marshalEnum(w, s) }

// UnmarshalGQL reads the GraphQL form.
func (s *JobState) UnmarshalGQL(v any) error { return unmarshalEnum(s, v, s.Values()) }

// HasEnded tells whether no worker has anything to do for a job in this state.
func (s JobState) HasEnded() bool {
	switch s {
	case JobSucceeded, JobFailed, JobCancelled:
		return true
	case JobPending, JobRunning:
	}
	return false
}

// JobEvent is what happens to a job and may move it.
type JobEvent string

// The events of a job.
const (
	EventJobSubmitted JobEvent = "SUBMITTED" // a person asked for it
	EventJobStarted   JobEvent = "STARTED"   // a worker began
	EventJobProgress  JobEvent = "PROGRESS"  // it got further
	EventJobSucceeded JobEvent = "SUCCEEDED" // nothing is left to do
	EventJobFailed    JobEvent = "FAILED"    // it cannot go on
	EventJobCancelled JobEvent = "CANCELLED" // a person stopped it
)

// JobTransition is one row of the table: an event, the states that it may find the job
// in, and the one that it leaves it in.
type JobTransition struct {
	Event JobEvent
	From  []JobState // empty for the event that creates the job
	To    JobState
}

// NextJobState is where event takes a job; ok is false where the table has no such
// transition.
func NextJobState(from JobState, event JobEvent) (to JobState, ok bool) {
	for _, t := range JobTransitions() {
		if t.Event == event && slices.Contains(t.From, from) {
			return t.To, true
		}
	}
	return from, false
}

// JobTransitions is the table of a job's life.
func JobTransitions() []JobTransition {
	at := func(states ...JobState) []JobState { return states }
	return []JobTransition{
		{EventJobSubmitted, at(), JobPending},
		{EventJobStarted, at(JobPending), JobRunning},
		{EventJobProgress, at(JobRunning), JobRunning},
		{EventJobSucceeded, at(JobRunning), JobSucceeded},
		{EventJobFailed, at(JobRunning), JobFailed},
		{EventJobCancelled, at(JobPending, JobRunning), JobCancelled},
	}
}

// JobFailure is why a job could not go on.
type JobFailure struct {
	Code    string `json:"code"` // a Code
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// BulkOperation is what a bulk job does to each of its machines.
type BulkOperation string

// The operations of bulk jobs.
const (
	BulkAssignSku   BulkOperation = "ASSIGN_SKU"   // assign a SKU, as assignSku does
	BulkUnassignSku BulkOperation = "UNASSIGN_SKU" // take the SKU away, as unassignSku does
)

// Values lists the operations, for ent.
func (BulkOperation) Values() []string {
	return []string{string(BulkAssignSku), string(BulkUnassignSku)}
}

// MarshalGQL writes the GraphQL form.
func (o BulkOperation) MarshalGQL(w io.Writer) { marshalEnum(w, o) }

// UnmarshalGQL reads the GraphQL form.
func (o *BulkOperation) UnmarshalGQL(v any) error { return unmarshalEnum(o, v, o.Values()) }

// BulkOutcome is what became of a machine in a bulk job.
type BulkOutcome string

// The outcomes of a bulk job's items.
const (
	BulkPending   BulkOutcome = "PENDING"   // its turn has not come
	BulkSucceeded BulkOutcome = "SUCCEEDED" // it was changed
	BulkFailed    BulkOutcome = "FAILED"    // the change was refused; code, reason and message say why
	BulkSkipped   BulkOutcome = "SKIPPED"   // there was nothing to change; reason and message say why
	BulkCancelled BulkOutcome = "CANCELLED" // the job ended before its turn
)

// Values lists the outcomes, for ent.
func (BulkOutcome) Values() []string {
	return []string{string(BulkPending), string(BulkSucceeded), string(BulkFailed), string(BulkSkipped), string(BulkCancelled)}
}

// MarshalGQL writes the GraphQL form.
func (o BulkOutcome) MarshalGQL(w io.Writer) { marshalEnum(w, o) }

// UnmarshalGQL reads the GraphQL form.
func (o *BulkOutcome) UnmarshalGQL(v any) error { return unmarshalEnum(o, v, o.Values()) }
