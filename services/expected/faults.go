package expected

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"fleetgraph/fleet"
)

// form is the manner in which a call takes its entries, and tells of what is wrong
// with them.
type form struct {
	list       string // name of the list; empty where there is one entry
	all        bool   // a refusal lists every faulty item
	skuUnknown string // the guide's text; it ends in the name where withName is set
	withName   bool
}

const batchSkuUnknown = "the SkuID specified for Expected Machine does not exist in DB: "

// The forms: one entry, a batch to create, a batch of edits, and all of a site.
func single() form {
	return form{skuUnknown: "SKU ID specified in request does not exist"}
}

func batchOf(list string) form {
	return form{list: list, all: true, skuUnknown: batchSkuUnknown, withName: true}
}

func wholeSite() form {
	return form{list: "expectedMachines", skuUnknown: "SkuID specified for an Expected Machine does not exist on the Site"}
}

// unknownSku is the fault of an entry whose SKU does not exist.
func (f form) unknownSku(name string) *fleet.Error {
	text := f.skuUnknown
	if f.withName {
		text += shown(name)
	}
	return fleet.Invalid("skuName", "SKU_NOT_FOUND", "%s", text)
}

// faults are the first fault of each entry of a call, by its index.
type faults map[int]*fleet.Error

// add notes what is wrong with an entry; nil and later faults change nothing. What is
// no fault of the entry is returned.
func (f faults) add(i int, err error) error {
	var fault *fleet.Error
	switch {
	case err == nil:
	case !errors.As(err, &fault):
		return err
	case f[i] == nil:
		f[i] = fault
	}
	return nil
}

// itemError is a fault as error details show it.
type itemError struct {
	Index   int        `json:"index"`
	Code    fleet.Code `json:"code"`
	Reason  string     `json:"reason"`
	Field   string     `json:"field"`
	Message string     `json:"message"`
}

// refusal is the error of a call with these faults; nil without any.
func (f form) refusal(found faults) error {
	if len(found) == 0 {
		return nil
	}
	indexes := slices.Sorted(maps.Keys(found))
	if !f.all {
		first := indexes[0]
		if f.list == "" {
			return found[first]
		}
		return found[first].At(f.list + "." + strconv.Itoa(first))
	}
	items := make([]itemError, len(indexes))
	for n, i := range indexes {
		items[n] = itemError{i, found[i].Code, found[i].Reason, found[i].Field, found[i].Message}
	}
	return fleet.Invalid(f.list, "BATCH_INVALID", "Failed to validate Expected Machine update data").
		WithDetails(map[string]any{"itemErrors": items})
}

// duplicateMac is the guide's text for a BMC that is there already.
const duplicateMac = "Duplicate MAC address for expected host BMC interface: %s"

// checkItems checks every entry by itself, and that no two name the same BMC.
func checkItems(items []Fields, found faults) error {
	seen := make(map[string]bool, len(items))
	for i := range items {
		if err := found.add(i, items[i].check()); err != nil {
			return err
		}
		mac := items[i].BmcMacAddress.Value
		if mac == nil || found[i] != nil {
			continue
		}
		if seen[*mac] {
			found[i] = fleet.Invalid("bmcMacAddress", "DUPLICATE", duplicateMac, *mac)
		}
		seen[*mac] = true
	}
	return nil
}
