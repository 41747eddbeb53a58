package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/spf13/cobra"

	"fleetgraph/cmd/fleetctl/client"
)

func (a *app) skuUpdateMetadata() *cobra.Command {
	var description, deviceType string
	var cmd *cobra.Command
	cmd = &cobra.Command{
		Use:   "update-metadata SKU",
		Short: "Changes the description and the device type of a SKU",
		Long: "Changes what is not compared: the description and the device type. A flag that is not given leaves its\n" +
			"field; an empty device type takes it away.",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			var m metadata
			if cmd.Flags().Changed("description") {
				m.description = &description
			}
			if cmd.Flags().Changed("device-type") {
				m.deviceType = &deviceType
			}
			if m.isEmpty() {
				return usagef("give --description, --device-type or both")
			}
			s, err := a.updateMetadata(ctx, args[0], m)
			if err != nil {
				return err
			}
			a.note("updated the SKU %s", s.Name)
			return a.show(result{data: document(s, nil)})
		}),
		ValidArgsFunction: a.completeArgs(a.skuNames),
	}
	cmd.Flags().StringVar(&description, "description", "", "new description")
	cmd.Flags().StringVar(&deviceType, "device-type", "", "new device type")
	return cmd
}

// metadata is what to change of a SKU; nil leaves a field.
type metadata struct {
	description, deviceType *string
}

func (m metadata) isEmpty() bool { return m.description == nil && m.deviceType == nil }

func (a *app) updateMetadata(ctx context.Context, name string, m metadata) (client.SkuFields, error) {
	s, err := a.sku(ctx, name)
	if err != nil {
		return client.SkuFields{}, err
	}
	gql, err := a.api()
	if err != nil {
		return client.SkuFields{}, err
	}
	return sendMetadata(ctx, gql, s.Id, m)
}

func sendMetadata(ctx context.Context, gql graphql.Client, skuID string, m metadata) (client.SkuFields, error) {
	if m.deviceType != nil && *m.deviceType == "" {
		done, err := client.ClearSkuDeviceType(ctx, gql, skuID, m.description, newKey())
		if err != nil {
			return client.SkuFields{}, err
		}
		return done.UpdateSkuMetadata.Sku, nil
	}
	done, err := client.UpdateSkuMetadata(ctx, gql, client.UpdateSkuMetadataInput{
		SkuId: skuID, Description: m.description, DeviceType: m.deviceType, IdempotencyKey: newKey(),
	})
	if err != nil {
		return client.SkuFields{}, err
	}
	return done.UpdateSkuMetadata.Sku, nil
}

// bulkOutcome is the outcome of a file of metadata, as scripts read it.
type bulkOutcome struct {
	Lines   int         `json:"lines"`
	Updated int         `json:"updated"`
	Errors  []bulkError `json:"errors"`
}

type bulkError struct {
	Line int `json:"line"`
	errorView
}

func (a *app) skuBulkUpdateMetadata() *cobra.Command {
	return &cobra.Command{
		Use:   "bulk-update-metadata CSVFILE",
		Short: "Changes the metadata of many SKUs",
		Long: "Changes the metadata of the SKUs in a CSV file without a header: name, device type, description. An empty\n" +
			"cell leaves its field. Lines stand alone: one that fails is reported with its number and the next one\n" +
			"follows. The exit code is 1 if any failed. A dash reads the standard input.",
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			data, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			outcome, err := a.bulkUpdate(ctx, csv.NewReader(strings.NewReader(string(data))))
			if err != nil {
				return err
			}
			a.note("updated %d of %d SKUs", outcome.Updated, outcome.Lines)
			if err := a.show(result{data: outcome}); err != nil {
				return err
			}
			if len(outcome.Errors) > 0 {
				return quietError{}
			}
			return nil
		}),
	}
}

// bulkUpdate sends each line of in as its own change. It gives up only when the
// server cannot be reached any more.
func (a *app) bulkUpdate(ctx context.Context, in *csv.Reader) (bulkOutcome, error) {
	in.FieldsPerRecord = -1
	outcome := bulkOutcome{Errors: []bulkError{}}
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return outcome, nil
		}
		outcome.Lines++
		line := 0
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			line = syntax.StartLine
			err = syntax.Err
		} else if err == nil {
			line, _ = in.FieldPos(0)
			err = a.updateLine(ctx, record)
		}
		switch {
		case err == nil:
			outcome.Updated++
		case isUnreachable(err) || ctx.Err() != nil:
			return outcome, fmt.Errorf("line %d, after %d updates: %w", line, outcome.Updated, err)
		default:
			outcome.Errors = append(outcome.Errors, bulkError{line, describeError(err)})
			if a.format == formatTable || a.format == formatCSV {
				fmt.Fprintf(a.stderr, "line %d: error: %s\n", line, describeError(err))
			}
		}
	}
}

func (a *app) updateLine(ctx context.Context, record []string) error {
	if len(record) > 3 {
		return fmt.Errorf("%d columns, expected SKU, device type, description", len(record))
	}
	record = append(record, "", "")
	var m metadata
	if record[1] != "" {
		m.deviceType = &record[1]
	}
	if record[2] != "" {
		m.description = &record[2]
	}
	if record[0] == "" || m.isEmpty() {
		return errors.New("expected a SKU and a device type, a description or both")
	}
	_, err := a.updateMetadata(ctx, record[0], m)
	return err
}
