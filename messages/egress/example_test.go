package egress_test

import (
	"fmt"
	"net/netip"

	"github.com/longshore-run/longshore/messages/egress"
	"github.com/longshore-run/longshore/messages/hosts"
)

// Addresses of the open internet may be called; others only if the operator lists them.
func ExamplePublic() {
	listed, err := hosts.Parse([]string{"hooks.internal:8443", "10.0.0.7"})
	if err != nil {
		panic(err)
	}
	fmt.Println(listed.Lists("hooks.internal:8443"), listed.Lists("hooks.internal:22"))
	for _, at := range []string{"10.0.0.7:443", "10.0.0.8:443", "169.254.169.254:80", "93.184.216.34:443"} {
		address := netip.MustParseAddrPort(at)
		fmt.Println(at, egress.Public(address.Addr()) || listed.ListsAddress(address))
	}
	_, err = hosts.Parse([]string{"https://hooks.internal/path"})
	fmt.Println(err)
	// Output:
	// true false
	// 10.0.0.7:443 true
	// 10.0.0.8:443 false
	// 169.254.169.254:80 false
	// 93.184.216.34:443 true
	// "https://hooks.internal/path" is not a host such as hooks.example.com, hooks.example.com:8443 or 10.1.2.3
}
