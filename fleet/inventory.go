package fleet

import "strings"

// Inventory is a machine's hardware as its host agent discovers it. Absent
// fields are empty strings, zeros or empty lists.
type Inventory struct {
	MachineType          string                `json:"machine_type"`
	DmiData              *DmiData              `json:"dmi_data,omitempty"`
	CpuInfo              []CpuInfo             `json:"cpu_info"`
	BlockDevices         []BlockDevice         `json:"block_devices"`
	NvmeDevices          []NvmeDevice          `json:"nvme_devices"`
	Gpus                 []GpuDevice           `json:"gpus"`
	MemoryDevices        []MemoryDevice        `json:"memory_devices"`
	InfinibandInterfaces []InfinibandInterface `json:"infiniband_interfaces"`
	NetworkInterfaces    []NetworkInterface    `json:"network_interfaces"`
	TpmDescription       *TpmDescription       `json:"tpm_description,omitempty"`
}

// DmiData is what the firmware says of the system. ProductSku is the system SKU
// number, which the platform is taken from.
type DmiData struct {
	BoardName     string `json:"board_name"`
	BoardVersion  string `json:"board_version"`
	BiosVersion   string `json:"bios_version"`
	BiosDate      string `json:"bios_date"`
	ProductSerial string `json:"product_serial"`
	BoardSerial   string `json:"board_serial"`
	ChassisSerial string `json:"chassis_serial"`
	ProductName   string `json:"product_name"`
	ProductSku    string `json:"product_sku,omitempty"`
	SysVendor     string `json:"sys_vendor"`
}

// CpuInfo is one processor model. Cores and Threads are per socket.
type CpuInfo struct {
	Model   string `json:"model"`
	Vendor  string `json:"vendor"`
	Sockets int    `json:"sockets"`
	Cores   int    `json:"cores"`
	Threads int    `json:"threads"`
}

// BlockDevice is a disk or a partition. DeviceType is "disk", "partition" or
// empty where the agent did not tell.
type BlockDevice struct {
	Model      string `json:"model"`
	Revision   string `json:"revision"`
	Serial     string `json:"serial"`
	DeviceType string `json:"device_type"`
}

// NvmeDevice is an NVMe controller. SizeMb is in MiB and PciPath is the udev
// device path of the controller; both are nil in inventories from before schema
// version 5.
type NvmeDevice struct {
	Model       string  `json:"model"`
	FirmwareRev string  `json:"firmware_rev"`
	Serial      string  `json:"serial"`
	SizeMb      *int64  `json:"size_mb,omitempty"`
	PciPath     *string `json:"pci_path,omitempty"`
}

// GpuDevice is one GPU as nvidia-smi reports it; TotalMemory is text such as
// "81559 MiB".
type GpuDevice struct {
	Name           string        `json:"name"`
	Serial         string        `json:"serial"`
	DriverVersion  string        `json:"driver_version"`
	VbiosVersion   string        `json:"vbios_version"`
	InforomVersion string        `json:"inforom_version"`
	TotalMemory    string        `json:"total_memory"`
	Frequency      string        `json:"frequency"`
	PciBusID       string        `json:"pci_bus_id"`
	PlatformInfo   *PlatformInfo `json:"platform_info,omitempty"`
}

// PlatformInfo places a GPU in a rack-scale system.
type PlatformInfo struct {
	ChassisSerial string `json:"chassis_serial"`
	SlotNumber    int    `json:"slot_number"`
	TrayIndex     int    `json:"tray_index"`
	HostID        int    `json:"host_id"`
	ModuleID      int    `json:"module_id"`
	FabricGuid    string `json:"fabric_guid"`
}

// MemoryDevice is one memory module; SizeMb is in MiB, nil where unknown.
type MemoryDevice struct {
	SizeMb  *int64  `json:"size_mb"`
	MemType *string `json:"mem_type"`
}

// InfinibandInterface is one InfiniBand port.
type InfinibandInterface struct {
	Guid          string         `json:"guid"`
	PciProperties *PciProperties `json:"pci_properties,omitempty"`
}

// NetworkInterface is one Ethernet port. It takes no part in SKUs.
type NetworkInterface struct {
	MacAddress    string         `json:"mac_address"`
	PciProperties *PciProperties `json:"pci_properties,omitempty"`
}

// PciProperties is where and what a PCI device is.
type PciProperties struct {
	Vendor      string  `json:"vendor"`
	Device      string  `json:"device"`
	Path        string  `json:"path"`
	NumaNode    int     `json:"numa_node"`
	Description *string `json:"description,omitempty"`
	Slot        *string `json:"slot,omitempty"`
}

// TpmDescription is what the trusted platform module says of itself; TpmSpec is
// the version a SKU compares.
type TpmDescription struct {
	Vendor          string `json:"vendor"`
	FirmwareVersion string `json:"firmware_version"`
	TpmSpec         string `json:"tpm_spec"`
}

// FabricPort is one port of the last fabric observation. A port with Lid 0xffff
// is not active.
type FabricPort struct {
	Guid string `json:"guid"`
	Lid  int    `json:"lid"`
}

// InactiveLid is the LID of a port that the subnet manager has not brought up.
const InactiveLid = 0xffff

// IsDPU tells whether the inventory is that of a data processing unit and not of
// a host: an arm64 board whose name speaks of BlueField.
func (i Inventory) IsDPU() bool {
	return i.MachineType == "aarch64" && i.DmiData != nil &&
		strings.Contains(strings.ToLower(i.DmiData.BoardName), "bluefield")
}

// SerialNumber returns the system's serial number: the product's, else the
// chassis's, else the board's; empty where the firmware has none. Serial numbers
// are not unique and never identify a machine.
func (i Inventory) SerialNumber() string {
	if i.DmiData == nil {
		return ""
	}
	for _, serial := range []string{i.DmiData.ProductSerial, i.DmiData.ChassisSerial, i.DmiData.BoardSerial} {
		if serial = strings.TrimSpace(serial); serial != "" {
			return serial
		}
	}
	return ""
}
