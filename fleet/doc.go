// Package fleet is the vocabulary of fleetgraph: states and their transition
// tables, SKU components and hardware inventories as types, error codes and
// reasons, and ids. It is a leaf: it imports the standard library only and does
// no I/O, so that every other package may depend on it. But for NewID it is pure.
package fleet
