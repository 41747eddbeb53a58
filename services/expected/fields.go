package expected

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"fleetgraph/fleet"
)

// Bounds of one entry: well beyond any host, and small enough that a site's entries
// are read at once.
const (
	maxDpus       = 64
	maxNics       = 128
	maxLabels     = 128
	maxLabelValue = 1024
	maxCredential = 256
)

// Fields are those of an entry as a caller gives them. To create an entry, what is
// not set or null has its default; to edit one, what is not set is kept and null
// clears, except in SkuName, which it keeps.
type Fields struct {
	BmcMacAddress                   fleet.Patch[string]
	BmcUsername                     fleet.Patch[string]
	BmcPassword                     fleet.Patch[string]
	ChassisSerialNumber             fleet.Patch[string]
	FallbackDpuSerialNumbers        fleet.Patch[[]string]
	Name                            fleet.Patch[string]
	Description                     fleet.Patch[string]
	Labels                          fleet.Patch[[]fleet.Label]
	SkuName                         fleet.Patch[string]
	HostNics                        fleet.Patch[[]fleet.HostNic]
	RackName                        fleet.Patch[string]
	DefaultPauseIngestionAndPoweron fleet.Patch[bool]
	DpfEnabled                      fleet.Patch[bool]
	BmcIPAddress                    fleet.Patch[string]
	BmcRetainCredentials            fleet.Patch[bool]
	DpuMode                         fleet.Patch[fleet.DpuMode]
	HostLifecycleProfile            fleet.Patch[fleet.HostLifecycleProfile]
}

// given tells which fields are set. Items of one batch compare as equal when they
// set the same.
type given [17]bool

func (f *Fields) given() given {
	return given{
		f.BmcMacAddress.Set, f.BmcUsername.Set, f.BmcPassword.Set, f.ChassisSerialNumber.Set, f.FallbackDpuSerialNumbers.Set,
		f.Name.Set, f.Description.Set, f.Labels.Set, f.SkuName.Set, f.HostNics.Set, f.RackName.Set,
		f.DefaultPauseIngestionAndPoweron.Set, f.DpfEnabled.Set, f.BmcIPAddress.Set, f.BmcRetainCredentials.Set,
		f.DpuMode.Set, f.HostLifecycleProfile.Set,
	}
}

// chassisSerial is what a serial number on a chassis looks like.
var chassisSerial = regexp.MustCompile(`^[A-Za-z0-9_-]{4,64}$`)

// check checks all fields and gives addresses their one form. It returns the first
// fault.
func (f *Fields) check() error {
	mac, err := f.BmcMacAddress.Required("bmcMacAddress")
	if err != nil {
		return err
	}
	if mac != nil {
		parsed, err := fleet.ParseMac("bmcMacAddress", *mac)
		if err != nil {
			return err
		}
		f.BmcMacAddress.Value = &parsed
	}
	if serial := f.ChassisSerialNumber.Value; serial != nil && !chassisSerial.MatchString(*serial) {
		return fleet.Invalid("chassisSerialNumber", "SERIAL_INVALID", "chassis serial is not formatted properly %s", shown(*serial))
	}
	for _, check := range []func() error{f.checkCredentials, f.checkDpus, f.checkNames, f.checkLabels, f.checkNics, f.checkSkuName} {
		if err := check(); err != nil {
			return err
		}
	}
	return address("bmcIpAddress", f.BmcIPAddress.Value)
}

// shown is input for the guide's texts, which stand without quotation marks unless
// there is something to escape or to cut.
func shown(s string) string {
	if quoted := fleet.Quoted(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

// checkCredentials never says what it has found: it would tell of a secret.
func (f *Fields) checkCredentials() error {
	for _, c := range []struct {
		field        string
		value, other *string
	}{
		{"bmcUsername", f.BmcUsername.Value, f.BmcPassword.Value},
		{"bmcPassword", f.BmcPassword.Value, f.BmcUsername.Value},
	} {
		if c.value == nil {
			if c.other != nil {
				return fleet.Invalid(c.field, "CREDENTIALS_INCOMPLETE", "bmcUsername and bmcPassword go together")
			}
			continue
		}
		n, clean := 0, utf8.ValidString(*c.value)
		for _, r := range *c.value {
			n++
			clean = clean && !unicode.IsControl(r)
		}
		if n == 0 || n > maxCredential || !clean {
			return fleet.Invalid(c.field, "CREDENTIALS_INVALID", "%s has 1 to %d characters, none of them a control character", c.field, maxCredential)
		}
	}
	if f.BmcUsername.Set != f.BmcPassword.Set && f.BmcUsername.Value == nil && f.BmcPassword.Value == nil {
		field := "bmcUsername"
		if f.BmcUsername.Set {
			field = "bmcPassword"
		}
		return fleet.Invalid(field, "CREDENTIALS_INCOMPLETE", "bmcUsername and bmcPassword go together")
	}
	return nil
}

// setsCredentials tells whether there is something to seal.
func (f *Fields) setsCredentials() bool { return f.BmcPassword.Value != nil }

// forgetsCredentials tells whether stored credentials are to go.
func (f *Fields) forgetsCredentials() bool { return f.BmcPassword.Set && f.BmcPassword.Value == nil }

func (f *Fields) checkDpus() error {
	const field = "fallbackDpuSerialNumbers"
	if f.FallbackDpuSerialNumbers.Value == nil {
		return nil
	}
	serials := *f.FallbackDpuSerialNumbers.Value
	if len(serials) > maxDpus {
		return tooLong(field, maxDpus)
	}
	seen := make(map[string]bool, len(serials))
	for i, serial := range serials {
		at := field + "." + strconv.Itoa(i)
		if err := fleet.CheckName(at, serial); err != nil {
			return err
		}
		if seen[serial] {
			return fleet.Invalid(at, "DUPLICATE", "duplicate dpu serial number found")
		}
		seen[serial] = true
	}
	return nil
}

func tooLong(field string, limit int) *fleet.Error {
	return fleet.Invalid(field, "LIST_TOO_LONG", "%s has at most %d entries", field, limit)
}

func (f *Fields) checkNames() error {
	if f.Name.Value != nil {
		if err := fleet.CheckName("name", *f.Name.Value); err != nil {
			return err
		}
	}
	if f.RackName.Value != nil {
		if err := fleet.CheckName("rackName", *f.RackName.Value); err != nil {
			return err
		}
	}
	if f.Description.Value != nil {
		return fleet.CheckText("description", *f.Description.Value)
	}
	return nil
}

func (f *Fields) checkLabels() error {
	if f.Labels.Value == nil {
		return nil
	}
	labels := *f.Labels.Value
	if len(labels) > maxLabels {
		return tooLong("labels", maxLabels)
	}
	seen := make(map[string]bool, len(labels))
	for i, label := range labels {
		at := "labels." + strconv.Itoa(i)
		if err := fleet.CheckName(at+".key", label.Key); err != nil {
			return err
		}
		if seen[label.Key] {
			return fleet.Invalid(at+".key", "DUPLICATE", "the label %s is there twice", fleet.Quoted(label.Key))
		}
		seen[label.Key] = true
		if label.Value == nil {
			continue
		}
		if err := fleet.CheckText(at+".value", *label.Value); err != nil {
			return err
		}
		if utf8.RuneCountInString(*label.Value) > maxLabelValue {
			return fleet.Invalid(at+".value", "TEXT_INVALID", "%s.value has at most %d characters", at, maxLabelValue)
		}
	}
	return nil
}

func (f *Fields) checkNics() error {
	if f.HostNics.Value == nil {
		return nil
	}
	nics := *f.HostNics.Value
	if len(nics) > maxNics {
		return tooLong("hostNics", maxNics)
	}
	seen, primary := make(map[string]bool, len(nics)), false
	for i := range nics {
		at, nic := "hostNics."+strconv.Itoa(i), &nics[i]
		if err := checkNic(at, nic); err != nil {
			return err
		}
		if seen[nic.MacAddress] {
			return fleet.Invalid(at+".macAddress", "DUPLICATE", "Duplicate MAC address for a host network port: %s", nic.MacAddress)
		}
		if nic.Primary && primary {
			return fleet.Invalid(at+".primary", "PRIMARY_REPEATED", "at most one network port is primary")
		}
		seen[nic.MacAddress], primary = true, primary || nic.Primary
	}
	return nil
}

func checkNic(at string, nic *fleet.HostNic) (err error) {
	if nic.MacAddress, err = fleet.ParseMac(at+".macAddress", nic.MacAddress); err != nil {
		return err
	}
	if nic.NicType != nil {
		if err := fleet.CheckName(at+".nicType", *nic.NicType); err != nil {
			return err
		}
	}
	if err := address(at+".fixedIp", nic.FixedIP); err != nil {
		return err
	}
	if err := mask(at+".fixedMask", nic.FixedMask); err != nil {
		return err
	}
	return address(at+".fixedGateway", nic.FixedGateway)
}

// address checks an IP address and gives it its shortest form.
func address(field string, text *string) error {
	if text == nil {
		return nil
	}
	parsed, err := netip.ParseAddr(*text)
	if err != nil || parsed.Zone() != "" || parsed.IsUnspecified() || parsed.IsMulticast() {
		return fleet.Invalid(field, "IP_INVALID", "%s is not the IP address of a host", fleet.Quoted(*text))
	}
	*text = parsed.String()
	return nil
}

// mask checks a mask, which is written as an address.
func mask(field string, text *string) error {
	if text == nil {
		return nil
	}
	parsed, err := netip.ParseAddr(*text)
	if err == nil && parsed.Zone() == "" {
		if _, bits := net.IPMask(parsed.AsSlice()).Size(); bits > 0 {
			*text = parsed.String()
			return nil
		}
	}
	return fleet.Invalid(field, "IP_INVALID", "%s is not a mask such as 255.255.255.0", fleet.Quoted(*text))
}

func (f *Fields) checkSkuName() error {
	switch name := f.SkuName.Value; {
	case name == nil:
		return nil
	case *name == "":
		return fleet.Invalid("skuName", "NAME_INVALID", "SkuID cannot be empty")
	default:
		return fleet.CheckSkuName("skuName", *name)
	}
}
