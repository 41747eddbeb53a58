package bom

import (
	"fleetgraph/fleet"
)

// skuFact is what is known of a machine's SKU.
type skuFact int

const (
	skuNone    skuFact = iota // none is assigned
	skuMissing                // one is, and does not exist
	skuPresent                // one is, and exists
)

// question is something that has to be found out before a decision; each may cost
// a look at every SKU of a site, so none is answered unasked.
type question int

const (
	askNothing    question = iota
	askMatch               // whether a SKU of the site matches the machine
	askVerdict             // whether the machine matches its SKU
	askGeneration          // whether an attempt to generate the missing SKU was made
)

// answer is that to a question; unknown before it was asked.
type answer int

const (
	unknown answer = iota
	no
	yes
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

// facts are all that a decision depends on.
type facts struct {
	config          fleet.BomValidation
	onward          fleet.MachinePosition // where BOM validation leads the machine
	dpu             bool
	sku             skuFact
	fresh           bool // an inventory has just arrived
	changed         bool // a new inventory differs in what the SKU compares
	verifyRequested bool
	matchDue        bool // another match attempt may be made
	generateDue     bool // another attempt to generate the missing SKU may be made

	match     answer // to askMatch
	verdict   answer // to askVerdict
	generated answer // to askGeneration
}

// decision is the next move of a machine, or what has to be found out first, or
// neither: it stays.
type decision struct {
	ask   question
	event fleet.MachineEvent
	to    fleet.MachinePosition
}

func (d decision) stays() bool { return d.ask == askNothing && d.event == "" }

func move(event fleet.MachineEvent, to fleet.MachinePosition) decision {
	return decision{event: event, to: to}
}

func moveWithin(event fleet.MachineEvent, sub fleet.MachineSubState) decision {
	return move(event, fleet.BomPosition(sub))
}

// decide is BOM validation: what happens next to a machine that is at a position,
// by the facts. It has no other input and no effect. IgnoreUnassignedMachines
// concerns only machines without a SKU, AllowAllocationOnValidationFailure only
// machines with one (the guide, Configuration).
func decide(at fleet.MachinePosition, f facts) decision {
	if f.dpu {
		return decideDpu(at, f)
	}
	if at.State == fleet.StateReady {
		return decideReady(f)
	}
	if at.State != fleet.StateBomValidating {
		return decision{}
	}
	if !f.config.Enabled {
		return move(fleet.EventBomValidationDisabled, f.onward)
	}
	switch at.Sub {
	case fleet.SubMatchingSku:
		return decideMatching(f)
	case fleet.SubUpdatingInventory:
		return decideUpdating(f)
	case fleet.SubVerifyingSku:
		return decideVerifying(f)
	case fleet.SubSkuVerificationFailed:
		return decideFailed(f)
	case fleet.SubWaitingForSkuAssignment:
		return decideWaiting(f)
	case fleet.SubSkuMissing:
		return decideMissing(f)
	default:
		return decision{}
	}
}

// decideDpu: a DPU stands outside BOM validation, and loses the SKU that it may have
// got while it passed for a host.
func decideDpu(at fleet.MachinePosition, f facts) decision {
	if at.State == fleet.StateReady && f.sku == skuNone {
		return decision{}
	}
	if at.State == fleet.StateIngesting || at.State == fleet.StateReady || at.State == fleet.StateBomValidating {
		return move(fleet.EventDpuReported, fleet.MachinePosition{State: fleet.StateReady})
	}
	return decision{}
}

func decideReady(f facts) decision {
	switch {
	case !f.config.Enabled:
		return decision{}
	case f.sku == skuNone && f.matchDue && f.match == unknown:
		return decision{ask: askMatch}
	case f.sku == skuNone && f.match == yes:
		return moveWithin(fleet.EventSkuMatchFound, fleet.SubUpdatingInventory)
	case f.sku == skuNone && !f.config.IgnoreUnassignedMachines:
		return moveWithin(fleet.EventSkuNotFound, fleet.SubWaitingForSkuAssignment)
	case f.sku == skuNone:
		return decision{}
	case f.verifyRequested:
		return moveWithin(fleet.EventVerifyRequested, fleet.SubUpdatingInventory)
	case f.sku == skuMissing && !f.config.AllowAllocationOnValidationFailure:
		return moveWithin(fleet.EventSkuMissing, fleet.SubSkuMissing)
	case f.sku == skuPresent && f.changed:
		return moveWithin(fleet.EventInventoryChanged, fleet.SubVerifyingSku)
	default:
		return decision{}
	}
}

func decideMatching(f facts) decision {
	switch {
	case f.sku != skuNone:
		return moveWithin(fleet.EventVerificationStarted, fleet.SubVerifyingSku)
	case f.match == unknown:
		return decision{ask: askMatch}
	case f.match == yes:
		return move(fleet.EventSkuMatched, f.onward)
	case f.config.IgnoreUnassignedMachines:
		return move(fleet.EventUnassignedIgnored, f.onward)
	default:
		return moveWithin(fleet.EventSkuNotFound, fleet.SubWaitingForSkuAssignment)
	}
}

func decideUpdating(f facts) decision {
	switch {
	case !f.fresh:
		return decision{}
	case f.sku == skuNone:
		return moveWithin(fleet.EventInventoryUpdated, fleet.SubMatchingSku)
	default:
		return moveWithin(fleet.EventInventoryUpdated, fleet.SubVerifyingSku)
	}
}

func decideVerifying(f facts) decision {
	allowed := f.config.AllowAllocationOnValidationFailure
	switch {
	case f.sku == skuNone:
		return moveWithin(fleet.EventSkuGone, fleet.SubMatchingSku)
	case f.sku == skuMissing && allowed:
		return move(fleet.EventMissingAllowed, f.onward)
	case f.sku == skuMissing:
		return moveWithin(fleet.EventSkuMissing, fleet.SubSkuMissing)
	case f.verdict == unknown:
		return decision{ask: askVerdict}
	case f.verdict == yes:
		return move(fleet.EventSkuVerified, f.onward)
	case allowed:
		return move(fleet.EventMismatchAllowed, f.onward)
	default:
		return moveWithin(fleet.EventSkuMismatch, fleet.SubSkuVerificationFailed)
	}
}

func decideFailed(f facts) decision {
	switch {
	case f.sku == skuNone:
		return moveWithin(fleet.EventSkuGone, fleet.SubWaitingForSkuAssignment)
	case f.verifyRequested:
		return moveWithin(fleet.EventVerifyRequested, fleet.SubUpdatingInventory)
	case f.config.AllowAllocationOnValidationFailure:
		return move(fleet.EventMismatchAllowed, f.onward)
	default:
		return decision{}
	}
}

func decideWaiting(f facts) decision {
	switch {
	case f.sku != skuNone:
		return moveWithin(fleet.EventVerifyRequested, fleet.SubUpdatingInventory)
	case f.matchDue && f.match == unknown:
		return decision{ask: askMatch}
	case f.match == yes:
		return moveWithin(fleet.EventSkuMatchFound, fleet.SubUpdatingInventory)
	case f.config.IgnoreUnassignedMachines:
		return move(fleet.EventUnassignedIgnored, f.onward)
	default:
		return decision{}
	}
}

func decideMissing(f facts) decision {
	switch {
	case f.sku == skuNone && f.config.IgnoreUnassignedMachines:
		return move(fleet.EventUnassignedIgnored, f.onward)
	case f.sku == skuNone:
		return moveWithin(fleet.EventSkuGone, fleet.SubWaitingForSkuAssignment)
	case f.sku == skuPresent:
		return moveWithin(fleet.EventSkuAvailable, fleet.SubUpdatingInventory)
	case f.generateDue && f.generated == unknown:
		return decision{ask: askGeneration}
	case f.generated == yes:
		return moveWithin(fleet.EventSkuGenerationAttempted, fleet.SubUpdatingInventory)
	case f.config.AllowAllocationOnValidationFailure:
		return move(fleet.EventMissingAllowed, f.onward)
	default:
		return decision{}
	}
}
