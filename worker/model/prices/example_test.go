package prices_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/prices"
)

// An operator's file of prices comes before the built-in ones. What has no price is unknown, which is not free.
func ExampleLoad() {
	dir, err := os.MkdirTemp("", "prices")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "prices.yaml")
	err = os.WriteFile(name, []byte(`
version: 1
currency: USD
date: "2026-01-02"
source: our contract
prices:
  - {provider: openai, models: ["house-*"], input: 0.5, output: 2, cacheRead: 0.05}
`), 0o600)
	if err != nil {
		panic(err)
	}
	table, err := prices.Load(name)
	if err != nil {
		panic(err)
	}
	used := messages.Usage{Input: 10_000, CacheRead: 8_000, Output: 1_000, Total: 11_000}
	fmt.Println(table.Cost("openai", "house-large", used)) // 2000 at 0.5, 8000 at 0.05 and 1000 at 2, each per million
	fmt.Println(table.Cost("openai", "of-another-house", used))
	// Output:
	// 0.0034 true
	// 0 false
}
