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

func (c *inventoryCheck) text(field, value string) {
	if c.err == nil && len(value) > maxInventoryText {
		c.err = Invalid("inventory."+field, "INVENTORY_INVALID", "%d bytes in %s, at most %d are accepted", len(value), field, maxInventoryText)
	}
}

// checkInventory refuses figures and names that no hardware has.
func checkInventory(inventory Inventory) error {
	var c inventoryCheck
	c.list("cpu_info", len(inventory.CpuInfo), maxInventoryList)
	c.list("block_devices", len(inventory.BlockDevices), maxInventoryList)
	c.list("nvme_devices", len(inventory.NvmeDevices), maxInventoryDrives)
	c.list("gpus", len(inventory.Gpus), maxInventoryList)
	c.list("memory_devices", len(inventory.MemoryDevices), maxInventoryList)
	c.list("infiniband_interfaces", len(inventory.InfinibandInterfaces), maxInventoryList)
	c.list("network_interfaces", len(inventory.NetworkInterfaces), maxInventoryList)
	if dmi := inventory.DmiData; dmi != nil {
		c.text("dmi_data.product_serial", dmi.ProductSerial)
		c.text("dmi_data.chassis_serial", dmi.ChassisSerial)
		c.text("dmi_data.board_serial", dmi.BoardSerial)
		c.text("dmi_data.sys_vendor", dmi.SysVendor)
		c.text("dmi_data.product_name", dmi.ProductName)
		c.text("dmi_data.product_sku", dmi.ProductSku)
	}
	for i, cpu := range inventory.CpuInfo {
		c.number("cpu_info", i, "sockets", int64(cpu.Sockets), maxInventoryCount)
		c.number("cpu_info", i, "cores", int64(cpu.Cores), maxInventoryCount)
		c.number("cpu_info", i, "threads", int64(cpu.Threads), maxInventoryCount)
	}
	for i, drive := range inventory.NvmeDevices {
		if drive.SizeMb != nil {
			c.number("nvme_devices", i, "size_mb", *drive.SizeMb, maxInventorySizeMb)
		}
	}
	for i, module := range inventory.MemoryDevices {
		if module.SizeMb != nil {
			c.number("memory_devices", i, "size_mb", *module.SizeMb, maxInventorySizeMb)
		}
	}
	return c.err
}

func checkThreads(threads []cpuThread) error {
	var c inventoryCheck
	c.list("cpus", len(threads), maxInventoryThreads)
	for i, t := range threads {
		c.number("cpus", i, "number", int64(t.Number), maxInventoryCount-1)
		c.number("cpus", i, "socket", int64(t.Socket), maxInventoryCount-1)
		c.number("cpus", i, "core", int64(t.Core), maxInventoryCount-1)
	}
	return c.err
}
