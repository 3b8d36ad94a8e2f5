// Package prices says what model calls cost.
//
// A [Table] is made of files: the one that is built in, and the operator's, which [Load] puts before it or in its
// place. A price that no file gives is unknown, never 0; a model that costs nothing says so with zeros. Amounts are US
// dollars as a float64, rounded to a billionth of a dollar, so that sums stay the same in any order.
//
// A table prices tokens alone: no surcharge for long inputs, no batch or priority tariff, no images, no searches.
package prices
