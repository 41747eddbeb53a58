package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fleetgraph/cmd/fleetctl/client"
	"fleetgraph/fleet"
)

// expectedMachineCommand holds the commands of the guide, Registering Expected
// Machines, with the same words. The guide's "SKU ID" is the SKU's name, and need not
// exist yet.
func (a *app) expectedMachineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "expected-machine", Aliases: []string{"em"},
		Short: "Expected machines: what is known of machines before they are seen",
	}
	cmd.AddCommand(
		a.expectedShow(), a.expectedAdd(), a.expectedPatch(), a.expectedUpdate(),
		a.expectedReplaceAll(), a.expectedDelete(), a.expectedErase(),
	)
	return cmd
}

func (a *app) expectedShow() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "show [MAC]",
		Aliases: []string{"s"},
		Short:   "Lists the expected machines of the site, or shows one",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if len(args) == 0 && id == "" {
				all, err := a.expectedMachines(ctx, 0)
				if err != nil {
					return err
				}
				return a.showExpected(all...)
			}
			mac := ""
			if len(args) == 1 {
				mac = args[0]
			}
			found, err := a.findExpected(ctx, mac, id)
			if err != nil {
				return err
			}
			if found == nil {
				a.note("no expected machine %s", first(mac, id))
				return a.showExpected()
			}
			return a.showExpected(*found)
		}),
		ValidArgsFunction: a.completeArgs(a.expectedMacs),
	}
	cmd.Flags().StringVar(&id, "id", "", "show the expected machine of this id")
	return cmd
}

// expectedMachines reads the expected machines of the site by MAC address, at most
// limit of them unless it is 0.
func (a *app) expectedMachines(ctx context.Context, limit int) ([]client.ExpectedMachineFields, error) {
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	var machines []client.ExpectedMachineFields
	err = pages(limit, func(n int, after *string) (int, client.Page, error) {
		found, err := client.ListExpectedMachines(ctx, gql, site.Id, n, after)
		if err != nil {
			return 0, client.Page{}, err
		}
		for _, edge := range found.ExpectedMachines.Edges {
			machines = append(machines, *edge.Node)
		}
		return len(found.ExpectedMachines.Edges), found.ExpectedMachines.PageInfo, nil
	})
	return machines, err
}

func (a *app) expectedMacs(ctx context.Context) ([]string, error) {
	machines, err := a.expectedMachines(ctx, pageSize)
	found := make([]string, len(machines))
	for i := range machines {
		found[i] = machines[i].BmcMacAddress
	}
	return found, err
}

// findExpected finds an expected machine by its id, or at the site by the MAC address
// of its BMC; nil where there is none.
func (a *app) findExpected(ctx context.Context, mac, id string) (*client.ExpectedMachineFields, error) {
	if (mac == "") == (id == "") {
		return nil, usagef("give the MAC address of the BMC, or --id, and not both")
	}
	gql, err := a.api()
	if err != nil {
		return nil, err
	}
	if id != "" {
		found, err := client.ExpectedMachineById(ctx, gql, id)
		if err != nil {
			return nil, err
		}
		for _, edge := range found.ExpectedMachines.Edges {
			return edge.Node, nil
		}
		return nil, nil //nolint:nilnil // stated above
	}
	site, err := a.site(ctx)
	if err != nil {
		return nil, err
	}
	found, err := client.ExpectedMachineByMac(ctx, gql, site.Name, mac)
	if err != nil {
		return nil, err
	}
	return found.ExpectedMachine, nil
}

// expected is findExpected for a command that needs the entry.
func (a *app) expected(ctx context.Context, mac, id string) (client.ExpectedMachineFields, error) {
	found, err := a.findExpected(ctx, mac, id)
	if err != nil {
		return client.ExpectedMachineFields{}, err
	}
	if found == nil {
		return client.ExpectedMachineFields{}, fleet.Missing("expectedMachine", "EXPECTED_MACHINE_NOT_FOUND", "expected_machine not found: %s", first(mac, id))
	}
	return *found, nil
}

func (a *app) showExpected(machines ...client.ExpectedMachineFields) error {
	views := make([]expectedView, len(machines))
	for i, m := range machines {
		views[i] = newExpectedView(m)
	}
	return a.show(result{data: views, grid: a.expectedGrid(views)})
}

func (a *app) expectedGrid(views []expectedView) *grid {
	g := &grid{headers: []string{
		"Serial Number", "BMC Mac", "Interface IP", "Fallback DPUs", "Associated Machine", "Name", "Description", "Labels", "SKU ID",
		"Pause On Ingestion", "DPF Enabled", "Disable Lockdown", "DPU Mode",
	}}
	if a.flags.extended {
		g.headers = append(g.headers, "Rack ID", "Host NICs", "BMC Credentials", "Retain Credentials", "ID")
	}
	for _, v := range views {
		var lockdown *bool
		if v.HostLifecycleProfile != nil {
			lockdown = v.HostLifecycleProfile.DisableLockdown
		}
		row := []cell{
			text(v.ChassisSerialNumber), text(v.BmcMacAddress), optional(v.BmcIPAddress), cell(v.FallbackDpuSerialNumbers),
			text(v.machine), text(v.Metadata.Name), text(v.Metadata.Description), labelLines(v.Metadata.Labels), optional(v.SkuID),
			optionalBool(v.DefaultPauseIngestionAndPoweron), optionalBool(v.DpfEnabled), optionalBool(lockdown), optional(v.DpuMode),
		}
		if a.flags.extended {
			nics := cell{}
			for _, nic := range v.HostNics {
				nics = append(nics, nic.MacAddress)
			}
			row = append(row, optional(v.RackID), nics, optionalBool(&v.HasBmcCredentials), optionalBool(v.BmcRetainCredentials), text(v.ID))
		}
		g.add(row...)
	}
	return g
}

func labelLines(labels []fleet.Label) cell {
	lines := cell{}
	for _, label := range labels {
		line := label.Key
		if label.Value != nil {
			line += ":" + *label.Value
		}
		lines = append(lines, line)
	}
	return lines
}

// optionalBool is a cell that is empty for nil.
func optionalBool(b *bool) cell {
	if b == nil {
		return text("")
	}
	return text(strconv.FormatBool(*b))
}

// expectedFlags are the flags that describe an expected machine.
type expectedFlags struct {
	cmd                                               *cobra.Command
	mac, username, password, passwordFile, serial     string
	sku, name, description, rack, address, mode, nics string
	dpus, labels                                      []string
	pause, dpf, retainCredentials, disableLockdown    bool
}

func (f *expectedFlags) register(a *app, cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.mac, "bmc-mac-address", "", "MAC `address` of the BMC")
	flags.StringVar(&f.username, "bmc-username", "", "user name at the BMC")
	flags.StringVar(&f.password, "bmc-password", "", "password at the BMC; other users of this machine see a command line, so better --bmc-password-file")
	flags.StringVar(&f.passwordFile, "bmc-password-file", "", "`file` of the password at the BMC; a dash reads the standard input")
	flags.StringVar(&f.serial, "chassis-serial-number", "", "serial number on the chassis")
	flags.StringArrayVar(&f.dpus, "fallback-dpu-serial-number", nil, "serial number of a DPU; may be repeated")
	flags.StringVar(&f.sku, "sku-id", "", "name of the SKU that the machine is to have; it need not exist yet")
	flags.StringVar(&f.name, "name", "", "name that the machine gets")
	flags.StringVar(&f.description, "description", "", "free text for people")
	flags.StringArrayVar(&f.labels, "label", nil, "`key[:value]` of a label; may be repeated")
	flags.StringVar(&f.rack, "rack-id", "", "name of the rack")
	flags.StringVar(&f.address, "bmc-ip-address", "", "IP address of the BMC")
	flags.StringVar(&f.mode, "dpu-mode", "", "how its DPUs are to be used: dpu_mode, nic_mode or no_dpu")
	flags.StringVar(&f.nics, "host-nics", "", `network ports, as in a file: [{"mac_address": "…", "primary": true}]`)
	flags.BoolVar(&f.pause, "default-pause-ingestion-and-poweron", false, "wait with ingestion, and leave the machine off")
	flags.BoolVar(&f.dpf, "dpf-enabled", false, "have DPF manage its DPUs")
	flags.BoolVar(&f.retainCredentials, "bmc-retain-credentials", false, "leave the credentials of the BMC as given")
	flags.BoolVar(&f.disableLockdown, "disable-lockdown", false, "do not lock down its firmware")
	cmd.MarkFlagsMutuallyExclusive("bmc-password", "bmc-password-file")
	a.completeWords(cmd, "dpu-mode", "dpu_mode", "nic_mode", "no_dpu")
	a.completeNames(cmd, "sku-id", a.skuNames)
}

// read gives the flags that are set the form of a file.
func (f *expectedFlags) read(a *app) (expectedFile, error) {
	var out expectedFile
	for name, to := range map[string]struct {
		value *string
		field **string
	}{
		"bmc-mac-address":       {&f.mac, &out.BmcMacAddress},
		"bmc-username":          {&f.username, &out.BmcUsername},
		"bmc-password":          {&f.password, &out.BmcPassword},
		"chassis-serial-number": {&f.serial, &out.ChassisSerialNumber},
		"sku-id":                {&f.sku, &out.SkuID},
		"rack-id":               {&f.rack, &out.RackID},
		"bmc-ip-address":        {&f.address, &out.BmcIPAddress},
		"dpu-mode":              {&f.mode, &out.DpuMode},
	} {
		if f.isSet(name) {
			*to.field = to.value
		}
	}
	for name, to := range map[string]struct {
		value *bool
		field **bool
	}{
		"default-pause-ingestion-and-poweron": {&f.pause, &out.DefaultPauseIngestionAndPoweron},
		"dpf-enabled":                         {&f.dpf, &out.DpfEnabled},
		"bmc-retain-credentials":              {&f.retainCredentials, &out.BmcRetainCredentials},
	} {
		if f.isSet(name) {
			*to.field = to.value
		}
	}
	if f.isSet("disable-lockdown") {
		out.HostLifecycleProfile = &fleet.HostLifecycleProfile{DisableLockdown: &f.disableLockdown}
	}
	out.FallbackDpuSerialNumbers, out.Metadata = f.dpus, f.metadata()
	if f.isSet("host-nics") {
		if err := json.Unmarshal([]byte(f.nics), &out.HostNics); err != nil {
			return expectedFile{}, usagef("--host-nics: %w", err)
		}
	}
	if _, err := dpuMode(out.DpuMode); err != nil {
		return expectedFile{}, usagef("--dpu-mode: %w", err)
	}
	var err error
	if f.isSet("bmc-password-file") || out.BmcUsername != nil && out.BmcPassword == nil {
		out.BmcPassword, err = a.readPassword(f.passwordFile)
	}
	return out, err
}

func (f *expectedFlags) isSet(name string) bool { return f.cmd.Flags().Changed(name) }

func (f *expectedFlags) metadata() *expectedMetadata {
	m := expectedMetadata{Name: f.name, Description: f.description}
	for _, label := range f.labels {
		key, value, ok := strings.Cut(label, ":")
		m.Labels = append(m.Labels, fleet.Label{Key: key})
		if ok {
			m.Labels[len(m.Labels)-1].Value = &value
		}
	}
	return &m
}

// readPassword reads a password from a file, else asks for it at a terminal without
// echo.
func (a *app) readPassword(name string) (*string, error) {
	if name != "" {
		data, err := a.readFile(name)
		if err != nil {
			return nil, err
		}
		return new(strings.TrimRight(string(data), "\r\n")), nil
	}
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil, usagef("give the password: --bmc-password-file FILE, or --bmc-password")
	}
	fmt.Fprint(a.stderr, "BMC password: ")
	data, err := term.ReadPassword(int(file.Fd()))
	_, _ = io.WriteString(a.stderr, "\n")
	if err != nil {
		return nil, err
	}
	return new(string(data)), nil
}

func (a *app) expectedAdd() *cobra.Command {
	var flags expectedFlags
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Registers an expected machine",
		Long: "Registers an expected machine. The password is --bmc-password-file, else --bmc-password, else it is asked\n" +
			"for at the terminal.",
		Example: "  fleetctl expected-machine add --bmc-mac-address c4:5a:b1:c8:38:0d --bmc-username root \\\n" +
			"    --bmc-password-file password.txt --chassis-serial-number SERIAL-1 --sku-id dell.r750.gpu.1",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			in, err := flags.read(a)
			if err != nil {
				return err
			}
			site, err := a.site(ctx)
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			done, err := client.CreateExpectedMachine(ctx, gql, client.CreateExpectedMachineInput{
				SiteId: site.Id, ExpectedMachine: in.item(), AllowUnknownSku: true, IdempotencyKey: newKey(),
			})
			if err != nil {
				return err
			}
			return a.showExpected(done.CreateExpectedMachine.ExpectedMachine)
		}),
	}
	flags.register(a, cmd)
	for _, name := range []string{"bmc-mac-address", "bmc-username", "chassis-serial-number"} {
		_ = cmd.MarkFlagRequired(name) // it exists
	}
	return cmd
}

func (a *app) expectedPatch() *cobra.Command {
	var flags expectedFlags
	var id string
	cmd := &cobra.Command{
		Use:   "patch",
		Short: "Changes an expected machine",
		Long: "Changes the expected machine with the BMC of --bmc-mac-address, or of --id. A flag that is not given leaves\n" +
			"its field. A machine that was seen stays as it is.",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			in, err := flags.read(a)
			if err != nil {
				return err
			}
			mac := flags.mac
			if id != "" && in.BmcMacAddress != nil {
				mac = "" // the new one
			}
			patch := in.patch()
			if id != "" {
				patch.BmcMacAddress = in.BmcMacAddress
			}
			if flags.isSet("description") {
				patch.Description = &flags.description
			}
			if flags.isSet("name") {
				patch.Name = &flags.name
			}
			return a.patchExpected(ctx, mac, id, patch)
		}),
	}
	flags.register(a, cmd)
	cmd.Flags().StringVar(&id, "id", "", "change the expected machine of this id; --bmc-mac-address is its new one")
	a.completeNames(cmd, "bmc-mac-address", a.expectedMacs)
	return cmd
}

func (a *app) patchExpected(ctx context.Context, mac, id string, patch client.ExpectedMachinePatch) error {
	present, err := a.expected(ctx, mac, id)
	if err != nil {
		return err
	}
	gql, err := a.api()
	if err != nil {
		return err
	}
	done, err := client.UpdateExpectedMachine(ctx, gql, client.UpdateExpectedMachineInput{
		ExpectedMachineId: present.Id, Patch: patch, AllowUnknownSku: true, IdempotencyKey: newKey(),
	})
	if err != nil {
		return err
	}
	return a.showExpected(done.UpdateExpectedMachine.ExpectedMachine)
}

func (a *app) expectedUpdate() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Changes an expected machine as a file says",
		Long: "Changes the expected machine with the BMC that the file names. What the file does not have stays as it is.\n" +
			"A dash reads the standard input.",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			f, err := a.readExpected(name)
			if err != nil {
				return err
			}
			return a.patchExpected(ctx, *f.BmcMacAddress, "", f.patch())
		}),
	}
	cmd.Flags().StringVar(&name, "filename", "", "the `file`")
	_ = cmd.MarkFlagRequired("filename") // it exists
	return cmd
}

func (a *app) expectedReplaceAll() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "replace-all",
		Short: "Replaces all expected machines of the site by those of a file: all or none",
		Long: "Deletes all expected machines of the site and registers those of a file, {\"expected_machines\": [...]}, in\n" +
			"one transaction. A dash reads the standard input.",
		Args: cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			all, err := a.readAllExpected(name)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return usagef("%s holds no expected machine: to delete all of the site, use `em erase --confirm`", name)
			}
			items := make([]client.ExpectedMachineItem, len(all))
			for i := range all {
				items[i] = all[i].item()
			}
			return a.replaceExpected(ctx, items)
		}),
	}
	cmd.Flags().StringVar(&name, "filename", "", "the `file`")
	_ = cmd.MarkFlagRequired("filename") // it exists
	return cmd
}

func (a *app) expectedErase() *cobra.Command {
	var confirmed bool
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Deletes all expected machines of the site",
		Args:  cobra.NoArgs,
		RunE: a.work(func(ctx context.Context, _ []string) error {
			if !confirmed {
				return usagef("this deletes all expected machines of the site: say so with --confirm")
			}
			return a.replaceExpected(ctx, []client.ExpectedMachineItem{})
		}),
	}
	cmd.Flags().BoolVar(&confirmed, "confirm", false, "delete them")
	return cmd
}

// replaceExpected replaces the expected machines of the site, whose number it asks
// for first: an edit meanwhile has the server refuse.
func (a *app) replaceExpected(ctx context.Context, items []client.ExpectedMachineItem) error {
	site, err := a.site(ctx)
	if err != nil {
		return err
	}
	gql, err := a.api()
	if err != nil {
		return err
	}
	present, err := client.CountExpectedMachines(ctx, gql, site.Id)
	if err != nil {
		return err
	}
	done, err := client.ReplaceAllExpectedMachines(ctx, gql, client.ReplaceAllExpectedMachinesInput{
		SiteId: site.Id, ExpectedMachines: items, ExpectedCount: present.ExpectedMachines.TotalCount,
		AllowUnknownSku: true, IdempotencyKey: newKey(),
	})
	if err != nil {
		return err
	}
	out := done.ReplaceAllExpectedMachines
	a.note("deleted %s and registered %d at the site %s", plural(out.DeletedCount, "expected machine"), out.CreatedCount, site.Name)
	return a.show(result{data: map[string]int{"deleted_count": out.DeletedCount, "created_count": out.CreatedCount}})
}

func (a *app) expectedDelete() *cobra.Command {
	return &cobra.Command{
		Use:     "delete MAC",
		Aliases: []string{"d"},
		Short:   "Deletes an expected machine",
		Args:    cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			present, err := a.expected(ctx, args[0], "")
			if err != nil {
				return err
			}
			gql, err := a.api()
			if err != nil {
				return err
			}
			_, err = client.DeleteExpectedMachine(ctx, gql, client.DeleteExpectedMachineInput{ExpectedMachineId: present.Id, IdempotencyKey: newKey()})
			if err != nil {
				return err
			}
			a.note("deleted the expected machine %s", present.BmcMacAddress)
			return a.show(result{data: map[string]string{"deleted_expected_machine_id": present.Id}})
		}),
		ValidArgsFunction: a.completeArgs(a.expectedMacs),
	}
}
