package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fleetgraph/fleet"
	"fleetgraph/services/sku"
)

// readFile reads a file, or the standard input where its name is a dash.
func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}

// readJSON is readFile for a file of JSON. One whose name ends in .yaml or .yml is
// the same in YAML.
func (a *app) readJSON(name string) ([]byte, error) {
	data, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	if suffix := filepath.Ext(name); suffix == ".yaml" || suffix == ".yml" {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return data, nil
}

// readDocuments reads the SKUs of a file: one, {"skus": […]}, or a list as
// `sku show -f json` writes it.
func (a *app) readDocuments(name string) ([]sku.Document, error) {
	data, err := a.readJSON(name)
	if err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("[")) {
		data = slices.Concat([]byte(`{"skus":`), trimmed, []byte("}"))
	}
	documents, err := sku.ParseDocuments(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s holds no SKU", name)
	}
	return documents, nil
}

// readDocument reads a file of one SKU and gives it the name id, unless that is
// empty.
func (a *app) readDocument(name, id string) (sku.Document, error) {
	documents, err := a.readDocuments(name)
	if err != nil {
		return sku.Document{}, err
	}
	if len(documents) > 1 {
		return sku.Document{}, usagef("%s holds %d SKUs, expected one", name, len(documents))
	}
	d := documents[0]
	d.ID = first(id, d.ID)
	return d, nil
}

// parseLids reads the state of InfiniBand ports: GUID=LID, joined by commas. A
// LID is decimal, or hexadecimal after 0x; 0xffff means not active.
func parseLids(list string) ([]fleet.FabricPort, error) {
	if list == "" {
		return nil, nil
	}
	var ports []fleet.FabricPort
	for pair := range strings.SplitSeq(list, ",") {
		guid, number, ok := strings.Cut(strings.TrimSpace(pair), "=")
		lid, err := strconv.ParseUint(number, 0, 16)
		if !ok || guid == "" || errors.Is(err, strconv.ErrSyntax) {
			return nil, usagef("--ib-lids: %q is not GUID=LID", pair)
		}
		if err != nil {
			return nil, usagef("--ib-lids: the LID of %s is not within 0 and 65535", guid)
		}
		ports = append(ports, fleet.FabricPort{Guid: guid, Lid: int(lid)})
	}
	return ports, nil
}
