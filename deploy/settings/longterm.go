package settings

import (
	"net/url"
	"strings"
)

// LongTerm says where long-term memory is kept, and what gives its texts vectors.
type LongTerm struct {
	Memory         string `env:"LONGSHORE_MEMORY"          envDefault:"auto" help:"where long-term memory is kept: sqlite:PATH, a postgres:// URL, redis for that of REDIS_URL, auto for a file in the data folder of longshore dev and nothing elsewhere, or off"`
	MemoryItems    int64  `env:"LONGSHORE_MEMORY_ITEMS"    envDefault:"100000" help:"items of long-term memory that a tenant may have; 0: any number"`
	MemoryBytes    int64  `env:"LONGSHORE_MEMORY_BYTES"    envDefault:"1073741824" help:"bytes that the long-term memory of a tenant may have; 0: any number"`
	MemoryLanguage string `env:"LONGSHORE_MEMORY_LANGUAGE" help:"text search configuration of PostgreSQL by which words are found as well, such as german"`

	EmbeddingsModel      string `env:"LONGSHORE_EMBEDDINGS_MODEL"      help:"model that gives texts of long-term memory vectors; without it they are found by words alone. The word scripted: rules of the process, for trying it out"`
	EmbeddingsURL        string `env:"LONGSHORE_EMBEDDINGS_URL"        envDefault:"https://api.openai.com/v1" help:"address of an OpenAI-compatible endpoint of that model, without /embeddings"`
	EmbeddingsKey        string `env:"LONGSHORE_EMBEDDINGS_KEY"        help:"its key; without it none is sent" secret:"true"`
	EmbeddingsDimensions int    `env:"LONGSHORE_EMBEDDINGS_DIMENSIONS" envDefault:"0" help:"length of the vectors that the model is asked for; 0: its own"`
}

// Places of long-term memory that are words.
const (
	MemoryAuto  = "auto"
	MemoryOff   = "off"
	MemoryRedis = "redis"
	// MemorySQLite begins the path of a file.
	MemorySQLite = "sqlite:"
)

// EmbeddingsScripted is the model that is rules of the process.
const EmbeddingsScripted = "scripted"

// Check returns an *Error.
func (s *LongTerm) Check() error {
	scheme, _, isURL := strings.Cut(s.Memory, "://")
	_, err := url.Parse(s.Memory)
	switch {
	case s.Memory == "" || s.Memory == MemoryAuto || s.Memory == MemoryOff || s.Memory == MemoryRedis:
	case isURL && err == nil && (scheme == "postgres" || scheme == "postgresql"):
	case !isURL && strings.HasPrefix(s.Memory, MemorySQLite) && s.Memory != MemorySQLite:
	default:
		return Errorf("LONGSHORE_MEMORY: must be sqlite:PATH, a URL such as postgres://user@host/database, redis, auto or off")
	}
	switch {
	case s.MemoryItems < 0:
		return Errorf("LONGSHORE_MEMORY_ITEMS: must not be negative")
	case s.MemoryBytes < 0:
		return Errorf("LONGSHORE_MEMORY_BYTES: must not be negative")
	case s.EmbeddingsDimensions < 0 || s.EmbeddingsDimensions > maxDimensions:
		return Errorf("LONGSHORE_EMBEDDINGS_DIMENSIONS: must be 0 to %d", maxDimensions)
	}
	return nil
}

// maxDimensions is what long-term memory keeps.
const maxDimensions = 4096
