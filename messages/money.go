package messages

import (
	"math"
	"strconv"
	"strings"
)

// Money is US dollars as people write them: never with an exponent, to the cent from one dollar on, and below that with
// as many digits as say something.
func Money(usd float64) string {
	const digits, most = 4, 12 // significant below a dollar; behind the point
	switch size := math.Abs(usd); {
	case math.IsNaN(usd) || math.IsInf(usd, 0):
		return "$?"
	case size >= 1 || size == 0:
		return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
	default:
		behind := min(digits-1-int(math.Floor(math.Log10(size))), most)
		text := strings.TrimRight(strconv.FormatFloat(usd, 'f', behind, 64), "0")
		if point := strings.IndexByte(text, '.'); len(text)-point < len(".00") {
			text += strings.Repeat("0", len(".00")-(len(text)-point))
		}
		return "$" + text
	}
}
