package main

import (
	"github.com/spf13/cobra"
)

// skuCommand holds the commands of the guide, Managing SKU Validation, with the
// same words. The guide's "SKU ID" is the SKU's name.
func (a *app) skuCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sku", Short: "SKUs: hardware descriptions that machines are validated against"}
	cmd.AddCommand(
		a.skuShow(), a.skuShowMachines(),
		a.skuGenerate(), a.skuDiff(), a.skuExplain(),
		a.skuCreate(), a.skuReplace(), a.skuPreviewReplace(), a.skuDelete(),
		a.skuAssign(), a.skuUnassign(), a.skuVerify(), a.skuBulkAssign(), a.skuBulkUnassign(),
		a.skuUpdateMetadata(), a.skuBulkUpdateMetadata(),
	)
	return cmd
}
