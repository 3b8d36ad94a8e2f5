package keyring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/bus/keyring"
)

func TestMasterIsReadAsItWasWritten(t *testing.T) {
	m := newMaster(t)
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := keyring.ParseMaster(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Keys(), again.Keys()); diff != "" {
		t.Error(diff)
	}
	for _, shown := range []string{fmt.Sprint(m), fmt.Sprintf("%+v %#v", m, m)} {
		if strings.Contains(shown, "keyData") || !strings.Contains(shown, keyring.KeyID(m.Writer())) {
			t.Errorf("it shows as %s", shown)
		}
	}
}

func TestParseMasterRefuses(t *testing.T) {
	const seed = "c2VjcmV0LXNlY3JldC1zZWNyZXQ"
	for name, text := range map[string]string{
		"nothing":    "",
		"no keyset":  `{"key":"` + seed + `"}`,
		"a raw key":  seed,
		"no keys":    `{"primaryKeyId":1,"key":[]}`,
		"cut":        `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey","value":"` + seed,
		"other keys": `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.HmacKey","value":"EgQIAxAgGiCkAcXmMDpqW4kYqbxZUcUBnnJcU1eZ3Vx0Z2bLaS1Y2Q==","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":1,"outputPrefixType":"TINK"}]}`,
	} {
		if _, err := keyring.ParseMaster([]byte(text)); err == nil || strings.Contains(err.Error(), seed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
