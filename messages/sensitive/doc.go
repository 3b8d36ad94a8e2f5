// Package sensitive finds what should not be shown to everyone who may read about a run: keys and tokens by their form, e-mail
// addresses, phone numbers, payment cards, IBANs and US social security numbers. [Redact] and [RedactJSON] take all of it out
// of a text, [Holds] reports whether there is any, [Find] finds one category.
//
// All functions are pure: the same text always gives the same result, so that events can be derived again from a log. What they
// find is numbered as [Version]; a change of it is a new version in addition to the old one, for the logs that name it.
//
// A text is looked at as it stands and as it reads, see [Plain]: escapes, digits of other scripts and invisible characters hide nothing.
//
// It guesses by form, and is no proof: a text may hold what it does not find, and a number may look like another one. It knows no
// secrets; those of a process are taken out by their values, see worker/policy.
package sensitive
