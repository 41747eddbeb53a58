package fleet

// Schema versions of a SKU. A SKU is compared, for its whole life, by the rules
// of the version it was created with.
const (
	OldestSchemaVersion  = 0
	CurrentSchemaVersion = 5
)

// SkuComponents is the hardware that a SKU describes. The JSON form is the one
// of SKU files, so a file of the original system reads unchanged.
type SkuComponents struct {
	Chassis           Chassis            `json:"chassis"`
	Cpus              []Cpu              `json:"cpus"`
	Gpus              []Gpu              `json:"gpus"`
	InfinibandDevices []InfinibandDevice `json:"infiniband_devices"`
	Storage           []StorageGroup     `json:"storage"`
	Memory            []Memory           `json:"memory"`
	Tpm               *Tpm               `json:"tpm"`
}

// Chassis is the machine's board and enclosure. All three fields are compared.
type Chassis struct {
	Vendor       string `json:"vendor"`
	Model        string `json:"model"`
	Architecture string `json:"architecture"`
}

// Cpu is a number of identical processors. ThreadCount is threads per socket,
// Count is sockets.
type Cpu struct {
	Vendor      string `json:"vendor"`
	Model       string `json:"model"`
	ThreadCount int    `json:"thread_count"`
	Count       int    `json:"count"`
}

// Gpu is a number of GPUs of one model. TotalMemory is one GPU's memory as text,
// the way nvidia-smi prints it ("81559 MiB").
type Gpu struct {
	Vendor      string `json:"vendor"`
	Model       string `json:"model"`
	TotalMemory string `json:"total_memory"`
	Count       int    `json:"count"`
}

// InfinibandDevice is a number of InfiniBand ports of one vendor and model.
// InactiveDevices lists, zero-based within this vendor and model, the ports that
// are not active; it is a set.
type InfinibandDevice struct {
	Vendor          string `json:"vendor"`
	Model           string `json:"model"`
	Count           int    `json:"count"`
	InactiveDevices []int  `json:"inactive_devices"`
}

// StorageGroup is a group of drives. Up to schema version 4 a group is a model
// and a count. From version 5 it claims Count drives that match any of
// PciPatterns (none: every drive) and whose size in MiB lies within the
// inclusive bounds, of which either may be absent; Model is for reference only.
type StorageGroup struct {
	Model       string   `json:"model"`
	Count       int      `json:"count"`
	MinSizeMb   *int64   `json:"min_size_mb,omitempty"`
	MaxSizeMb   *int64   `json:"max_size_mb,omitempty"`
	PciPatterns []string `json:"pci_patterns,omitempty"`
}

// Memory is a number of identical memory modules. CapacityMb is the size of one
// module in MiB.
type Memory struct {
	MemoryType string `json:"memory_type"`
	CapacityMb int64  `json:"capacity_mb"`
	Count      int    `json:"count"`
}

// Tpm is the trusted platform module. Only Version is compared.
type Tpm struct {
	Vendor  string `json:"vendor"`
	Version string `json:"version"`
}
