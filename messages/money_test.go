package messages_test

import (
	"math"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

func TestMoney(t *testing.T) {
	for usd, want := range map[float64]string{
		0: "$0.00", 2.7e-05: "$0.000027", 0.0001230000001: "$0.000123", 0.5: "$0.50", 0.25: "$0.25", 0.123456: "$0.1235",
		0.999999: "$1.00", 1: "$1.00", 12.345: "$12.35", 1234567.891: "$1234567.89", 3.75e-08: "$0.0000000375", 1e-15: "$0.00",
		math.Inf(1): "$?",
	} {
		if got := messages.Money(usd); got != want {
			t.Errorf("%g: got %s, want %s", usd, got, want)
		}
	}
}
