package fleet

import "fmt"

// inventoryCheck collects the first fault of an inventory; later checks are
// skipped once there is one.
type inventoryCheck struct{ err error }

func (c *inventoryCheck) list(field string, length, limit int) {
	if c.err == nil && length > limit {
		c.err = Invalid("inventory."+field, "INVENTORY_TOO_LARGE", "%d entries in %s, at most %d are accepted", length, field, limit)
	}
}

func (c *inventoryCheck) number(list string, index int, name string, value, limit int64) {
	if c.err == nil && (value < 0 || value > limit) {
		field := fmt.Sprintf("inventory.%s.%d.%s", list, index, name)
		c.err = Invalid(field, "INVENTORY_INVALID", "%s is %d, expected 0 to %d", name, value, limit)
	}
}

func (c *inventoryCheck) text(field, value string) { c.short(field, value, maxInventoryText) }

func (c *inventoryCheck) short(field, value string, limit int) {
	if c.err == nil && len(value) > limit {
		c.err = Invalid("inventory."+field, "INVENTORY_INVALID", "%d bytes in %s, at most %d are accepted", len(value), field, limit)
	}
}

// texts checks texts of one entry of a list: name and value in turn.
func (c *inventoryCheck) texts(list string, index int, namesAndValues ...string) {
	for i := 0; i < len(namesAndValues); i += 2 {
		if len(namesAndValues[i+1]) > maxInventoryText { // a name is worth forming for a fault only
			c.text(fmt.Sprintf("%s.%d.%s", list, index, namesAndValues[i]), namesAndValues[i+1])
		}
	}
}

func (c *inventoryCheck) pci(list string, index int, p *PciProperties) {
	if p == nil {
		return
	}
	c.texts(list, index, "pci_properties.vendor", p.Vendor, "pci_properties.device", p.Device, "pci_properties.path", p.Path,
		"pci_properties.description", textOf(p.Description), "pci_properties.slot", textOf(p.Slot))
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// checkInventory refuses figures, names and lengths that no hardware has.
func checkInventory(inventory Inventory) error {
	var c inventoryCheck
	c.list("cpu_info", len(inventory.CpuInfo), maxInventoryList)
	c.list("block_devices", len(inventory.BlockDevices), maxInventoryList)
	c.list("nvme_devices", len(inventory.NvmeDevices), maxInventoryDrives)
	c.list("gpus", len(inventory.Gpus), maxInventoryList)
	c.list("memory_devices", len(inventory.MemoryDevices), maxInventoryList)
	c.list("infiniband_interfaces", len(inventory.InfinibandInterfaces), maxInventoryList)
	c.list("network_interfaces", len(inventory.NetworkInterfaces), maxInventoryList)
	if c.err != nil {
		return c.err
	}
	c.text("machine_type", inventory.MachineType)
	c.system(inventory)
	for i, cpu := range inventory.CpuInfo {
		c.texts("cpu_info", i, "model", cpu.Model, "vendor", cpu.Vendor)
		c.number("cpu_info", i, "sockets", int64(cpu.Sockets), maxInventoryCount)
		c.number("cpu_info", i, "cores", int64(cpu.Cores), maxInventoryCount)
		c.number("cpu_info", i, "threads", int64(cpu.Threads), maxInventoryCount)
	}
	c.drives(inventory)
	for i, gpu := range inventory.Gpus {
		c.texts("gpus", i, "name", gpu.Name, "serial", gpu.Serial, "driver_version", gpu.DriverVersion,
			"vbios_version", gpu.VbiosVersion, "inforom_version", gpu.InforomVersion, "total_memory", gpu.TotalMemory,
			"frequency", gpu.Frequency, "pci_bus_id", gpu.PciBusID)
		if p := gpu.PlatformInfo; p != nil {
			c.texts("gpus", i, "platform_info.chassis_serial", p.ChassisSerial, "platform_info.fabric_guid", p.FabricGuid)
		}
	}
	for i, module := range inventory.MemoryDevices {
		c.texts("memory_devices", i, "mem_type", textOf(module.MemType))
		if module.SizeMb != nil {
			c.number("memory_devices", i, "size_mb", *module.SizeMb, maxInventorySizeMb)
		}
	}
	for i, port := range inventory.InfinibandInterfaces {
		c.texts("infiniband_interfaces", i, "guid", port.Guid)
		c.pci("infiniband_interfaces", i, port.PciProperties)
	}
	for i, port := range inventory.NetworkInterfaces {
		c.texts("network_interfaces", i, "mac_address", port.MacAddress)
		c.pci("network_interfaces", i, port.PciProperties)
	}
	return c.err
}

func (c *inventoryCheck) system(inventory Inventory) {
	if dmi := inventory.DmiData; dmi != nil {
		c.text("dmi_data.board_name", dmi.BoardName)
		c.text("dmi_data.board_version", dmi.BoardVersion)
		c.text("dmi_data.bios_version", dmi.BiosVersion)
		c.text("dmi_data.bios_date", dmi.BiosDate)
		c.text("dmi_data.product_serial", dmi.ProductSerial)
		c.text("dmi_data.chassis_serial", dmi.ChassisSerial)
		c.text("dmi_data.board_serial", dmi.BoardSerial)
		c.text("dmi_data.sys_vendor", dmi.SysVendor)
		c.text("dmi_data.product_name", dmi.ProductName)
		c.text("dmi_data.product_sku", dmi.ProductSku)
	}
	if tpm := inventory.TpmDescription; tpm != nil {
		c.text("tpm_description.vendor", tpm.Vendor)
		c.text("tpm_description.firmware_version", tpm.FirmwareVersion)
		c.text("tpm_description.tpm_spec", tpm.TpmSpec)
	}
}

func (c *inventoryCheck) drives(inventory Inventory) {
	for i, disk := range inventory.BlockDevices {
		c.texts("block_devices", i, "model", disk.Model, "revision", disk.Revision, "serial", disk.Serial, "device_type", disk.DeviceType)
	}
	for i, drive := range inventory.NvmeDevices {
		c.texts("nvme_devices", i, "model", drive.Model, "firmware_rev", drive.FirmwareRev, "serial", drive.Serial)
		if drive.PciPath != nil {
			c.short(fmt.Sprintf("nvme_devices.%d.pci_path", i), *drive.PciPath, MaxPciPathLength)
		}
		if drive.SizeMb != nil {
			c.number("nvme_devices", i, "size_mb", *drive.SizeMb, maxInventorySizeMb)
		}
	}
}

func checkThreads(threads []cpuThread) error {
	var c inventoryCheck
	c.list("cpus", len(threads), maxInventoryThreads)
	for i, t := range threads {
		c.texts("cpus", i, "vendor", t.Vendor, "model", t.Model)
		c.number("cpus", i, "number", int64(t.Number), maxInventoryCount-1)
		c.number("cpus", i, "socket", int64(t.Socket), maxInventoryCount-1)
		c.number("cpus", i, "core", int64(t.Core), maxInventoryCount-1)
	}
	return c.err
}
