package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"fleetgraph/fleet"
)

func TestTextsOfAnInventoryAreBounded(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for field, test := range map[string]struct {
		limit int
		of    func(text string) object
	}{
		"nvme_devices.0.pci_path": {fleet.MaxPciPathLength, func(s string) object { return object{"nvme_devices": []object{{"pci_path": s}}} }},
		"nvme_devices.0.model":    {1024, func(s string) object { return object{"nvme_devices": []object{{"model": s}}} }},
		"machine_type":            {1024, func(s string) object { return object{"machine_type": s} }},
		"dmi_data.product_name":   {1024, func(s string) object { return object{"dmi_data": object{"product_name": s}} }},
		"gpus.0.name":             {1024, func(s string) object { return object{"gpus": []object{{"name": s}}} }},
		"infiniband_interfaces.0.pci_properties.slot": {1024, func(s string) object {
			return object{"infiniband_interfaces": []object{{"guid": "g", "pci_properties": object{"slot": s}}}}
		}},
	} {
		parse := func(n int) error {
			document, err := json.Marshal(test.of(strings.Repeat("x", n)))
			require.NoError(t, err)
			_, err = fleet.ParseInventory(document)
			return err
		}
		require.NoError(t, parse(test.limit), field)
		e, ok := fleet.AsError(parse(test.limit + 1))
		require.True(t, ok, field)
		require.Equal(t, []string{"INVALID_ARGUMENT", "INVENTORY_INVALID", "inventory." + field}, []string{string(e.Code), e.Reason, e.Field})
	}
}
