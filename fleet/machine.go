package fleet

import (
	"io"
	"strings"
)

// MachineKind tells a host from a DPU. A DPU stands outside BOM validation.
type MachineKind string

// The kinds of machine.
const (
	KindHost MachineKind = "HOST" // a server
	KindDPU  MachineKind = "DPU"  // a data processing unit, which stands outside BOM validation
)

// Values lists the kinds, for ent.
func (MachineKind) Values() []string { return []string{string(KindHost), string(KindDPU)} }

// MarshalGQL writes the GraphQL form.
func (k MachineKind) MarshalGQL(w io.Writer) { marshalEnum(w, k) }

// UnmarshalGQL reads the GraphQL form.
func (k *MachineKind) UnmarshalGQL(v any) error { return unmarshalEnum(k, v, k.Values()) }

// DefaultPlatform is the platform of a machine whose firmware names no system
// SKU number.
const DefaultPlatform = "default"

// platformReplacer maps each separator of a system SKU number to an underscore.
var platformReplacer = strings.NewReplacer("\n", "", "\r", "",
	" ", "_", "=", "_", ";", "_", ":", "_", "@", "_", "#", "_", "!", "_", "?", "_", "-", "_")

// Platform normalises a system SKU number to the platform key that tests are
// selected by: newlines dropped, each of blank = ; : @ # ! ? - replaced by an
// underscore, ASCII lower case, nothing trimmed or collapsed. Blank results are
// DefaultPlatform.
func Platform(systemSku string) string {
	key := asciiLower(platformReplacer.Replace(systemSku))
	if strings.Trim(key, "_ \t") == "" {
		return DefaultPlatform
	}
	return key
}
