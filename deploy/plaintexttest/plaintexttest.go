// Package plaintexttest plants words in what a test does, and looks for them in what was stored: in the clear, and in the forms in which
// JSON, URLs and command lines carry bytes.
//
//	words := plaintexttest.Plant("task", "file")
//	… submit a task with words["task"], and so on …
//	for _, f := range words.In(t, natsDir, redisDump) { t.Error(f) }
//
// A test must also look where nothing is encrypted, and find every word there: else it may look in the wrong places. Servers that
// compress what they store must be told not to.
package plaintexttest

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Words are random, each by the place that is told it.
type Words map[string]string

// Plant returns a new word for each place.
func Plant(places ...string) Words {
	w := Words{}
	for _, place := range places {
		w[place] = "plant" + rand.Text()
	}
	return w
}

// Found is a word in a file.
type Found struct {
	Place, File, Form string
}

func (f Found) String() string {
	return fmt.Sprintf("the word of %s is in %s (%s)", f.Place, f.File, f.Form)
}

// In returns the words that are in files, or in regular files below folders, by file and place: one for each word and file.
func (w Words) In(tb testing.TB, paths ...string) (found []Found) {
	tb.Helper()
	var files []string
	for _, root := range paths {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, path)
			}
			return err
		}); err != nil {
			tb.Fatal(err)
		}
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		found = append(found, w.InData(path, data)...)
	}
	return found
}

// InData is In for what was read from a place that has a name.
func (w Words) InData(name string, data []byte) (found []Found) {
	for _, place := range w.places() {
		for _, f := range forms(w[place]) {
			if bytes.Contains(data, []byte(f.text)) {
				found = append(found, Found{place, name, f.name})
				break
			}
		}
	}
	return found
}

// Missing are the places whose word is in none of the files.
func (w Words) Missing(tb testing.TB, paths ...string) []string {
	tb.Helper()
	found := w.In(tb, paths...)
	return slices.DeleteFunc(w.places(), func(place string) bool {
		return slices.ContainsFunc(found, func(f Found) bool { return f.Place == place })
	})
}

func (w Words) places() []string {
	places := make([]string, 0, len(w))
	for place := range w {
		places = append(places, place)
	}
	slices.Sort(places)
	return places
}

type form struct{ name, text string }

// forms are how a word may be written. In base64 it depends on where it begins, and its first and last characters on what is beside it.
func forms(word string) []form {
	out := []form{{"clear", word}, {"hex", hex.EncodeToString([]byte(word))}, {"HEX", strings.ToUpper(hex.EncodeToString([]byte(word)))}}
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), word...))
		out = append(out, form{"base64", text[(shift*8+5)/6 : (shift+len(word))*8/6]})
	}
	return out
}
