package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"fleetgraph/fleet"
)

// versionView is the build as scripts read it.
type versionView struct {
	Version          string `json:"version"`
	Revision         string `json:"revision"`
	Go               string `json:"go"`
	Platform         string `json:"platform"`
	SkuSchemaVersion int    `json:"sku_schema_version"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Shows the version of this program",
		Args:  cobra.NoArgs,
		RunE: a.work(func(context.Context, []string) error {
			v := versionView{
				Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				SkuSchemaVersion: fleet.CurrentSchemaVersion,
			}
			if info, ok := debug.ReadBuildInfo(); ok {
				v.Version = first(info.Main.Version, v.Version)
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			return a.show(result{data: v, page: func(p *page) {
				p.field("fleetctl", v.Version)
				if v.Revision != "" {
					p.field("Revision", v.Revision)
				}
				p.field("Go", v.Go)
				p.field("Platform", v.Platform)
				p.field("SKU Schema Version", strconv.Itoa(v.SkuSchemaVersion))
			}})
		}),
	}
}
