// Command grafana writes the dashboards of a fleet, as Grafana imports them. Run it from the top of the repository:
//
//	go run ./deploy/grafana
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// folder of the dashboards, seen from the top of the repository.
const folder = "deploy/grafana/dashboards"

func main() {
	if err := write(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	for name, board := range boards() {
		data, err := render(board)
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil { //nolint:gosec // for everybody to read
			return fmt.Errorf("write dashboard: %w", err)
		}
	}
	return nil
}

func render(b *dashboard) ([]byte, error) {
	data, err := json.MarshalIndent(b, "", "  ")
	return append(data, '\n'), err
}

// boards are the dashboards by file.
func boards() map[string]*dashboard {
	return map[string]*dashboard{"fleet.json": fleet(), "models.json": models()}
}
