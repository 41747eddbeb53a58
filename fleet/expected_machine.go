package fleet

import "io"

// DpuMode is how the DPUs of an expected machine are to be used.
type DpuMode string

// The modes.
const (
	DpuModeDpu  DpuMode = "DPU_MODE" // as DPUs
	DpuModeNic  DpuMode = "NIC_MODE" // as network cards
	DpuModeNone DpuMode = "NO_DPU"   // there are none
)

// Values lists the modes, for ent.
func (DpuMode) Values() []string {
	return []string{string(DpuModeDpu), string(DpuModeNic), string(DpuModeNone)}
}

// MarshalGQL writes the GraphQL form.
func (m DpuMode) MarshalGQL(w io.Writer) { marshalEnum(w, m) }

// UnmarshalGQL reads the GraphQL form.
func (m *DpuMode) UnmarshalGQL(v any) error { return unmarshalEnum(m, v, m.Values()) }

// Label is a key with an optional value that an operator puts on an object.
type Label struct {
	Key   string  `json:"key"`
	Value *string `json:"value,omitempty"`
}

// HostNic is a network port that an expected machine will have.
type HostNic struct {
	MacAddress   string  `json:"mac_address"`
	NicType      *string `json:"nic_type,omitempty"`
	FixedIP      *string `json:"fixed_ip,omitempty"`
	FixedMask    *string `json:"fixed_mask,omitempty"`
	FixedGateway *string `json:"fixed_gateway,omitempty"`
	Primary      bool    `json:"primary,omitempty"`
}

// HostLifecycleProfile is how a host is treated through its life.
type HostLifecycleProfile struct {
	DisableLockdown *bool `json:"disable_lockdown,omitempty"`
}
