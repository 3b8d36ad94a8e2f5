package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Headers of a request, as the Standard Webhooks specification names them.
const (
	HeaderID        = "Webhook-Id"        // the same for every attempt of the same delivery
	HeaderTimestamp = "Webhook-Timestamp" // of this attempt, in Unix seconds
	HeaderSignature = "Webhook-Signature" // one "v1,<base64>" for each key, separated by a space
)

const (
	keyPrefix  = "whsec_"
	sigVersion = "v1,"
	// Keeps these keys apart from others that may be derived from the secret.
	keyPurpose = "longshore webhook v1\x00"
)

// Key is the signing key of a tenant in the form that libraries for Standard Webhooks take. It is derived from the
// fleet's secret, so that a tenant can verify its own webhooks but cannot sign those of another.
func Key(secret, tenant string) string {
	return keyPrefix + base64.StdEncoding.EncodeToString(derive(secret, tenant))
}

func derive(secret, tenant string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(keyPurpose + tenant)) // never fails
	return mac.Sum(nil)
}

// sign is the signature header of a body that is sent at a time.
func sign(secrets []string, tenant, id string, at time.Time, body []byte) string {
	all := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, derive(secret, tenant))
		_, _ = mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		_, _ = mac.Write(body)
		all = append(all, sigVersion+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
