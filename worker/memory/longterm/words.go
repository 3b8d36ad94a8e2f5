package longterm

import (
	"slices"
	"strings"
	"unicode"
)

// Bounds of what of a text is looked at for its words.
const (
	MaxWords    = 64 // of a search: the first ones, each once
	maxWordLong = 48 // letters; the rest of a longer word is left out
)

// Words are the words of a text in lower case, in their order: letters and digits alone, so that no word means anything to
// a query language.
func Words(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
	for i, w := range words {
		words[i] = short(w)
	}
	return words
}

func short(w string) string {
	n := 0
	for i := range w {
		if n == maxWordLong {
			return strings.Clone(w[:i])
		}
		n++
	}
	return w
}

// SearchWords are the words that a search looks for: those of the text without the most common ones of English, unless there are only
// those; each once.
func SearchWords(text string) []string {
	all := Words(text)
	var telling []string
	for _, w := range all {
		if !common(w) {
			telling = append(telling, w)
		}
	}
	if len(telling) == 0 {
		telling = all
	}
	var out []string
	for _, w := range telling {
		if len(out) == MaxWords {
			break
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// common reports whether a word is in nearly every text.
func common(w string) bool {
	switch w {
	case "a", "an", "the", "and", "or", "but", "if", "of", "at", "by", "for", "with", "about", "to", "from", "in", "on", "as", "is", "are",
		"was", "were", "be", "been", "am", "do", "does", "did", "has", "have", "had", "it", "its", "this", "that", "these", "those", "there",
		"he", "she", "they", "we", "you", "i", "me", "him", "her", "them", "us", "my", "your", "his", "our", "their", "what", "which", "who",
		"whom", "whose", "when", "where", "why", "how", "can", "could", "will", "would", "shall", "should", "may", "might", "must", "s", "t":
		return true
	}
	return false
}

// Stem is a word without the usual endings of English, so that "shipping", "shipped" and "ships" meet. It is small on purpose: two
// words that it makes equal are close, and what it misses costs a match.
func Stem(w string) string {
	if len(w) < 4 || strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return w
	}
	switch {
	case strings.HasSuffix(w, "sses"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, end := range []string{"ing", "ed"} {
		root := strings.TrimSuffix(w, end)
		if root == w || len(root) < 3 || !strings.ContainsAny(root, "aeiouy") {
			continue
		}
		if n := len(root); root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
			root = root[:n-1] // shipped
		}
		w = root
		break
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e") // stored and store
	}
	if strings.HasSuffix(w, "y") && len(w) > 3 {
		w = w[:len(w)-1] + "i" // carried and carry
	}
	return w
}
