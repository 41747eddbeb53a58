// Package sku holds the rules of hardware descriptions: reading and writing SKU
// documents, generating a SKU from a machine's inventory, checking a SKU before
// it is stored, comparing a machine with a SKU, finding the SKUs that match a
// machine, finding duplicates, and explaining how far a machine is from a SKU.
//
// The package is pure: it never reads a clock, a database or random numbers, and
// equal arguments give equal results. No result depends on the order of lists in
// an inventory or in a SKU.
package sku
