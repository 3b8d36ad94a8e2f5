package hooks

import "testing"

func TestMayDial(t *testing.T) {
	t.Parallel()
	h, err := parseHosts([]string{"10.1.2.3", "[fd00::1]:443"})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"10.1.2.3:80": true, "[::ffff:10.1.2.3]:80": true, "[fd00::1]:443": true,
		"10.1.2.4:80": false, "127.0.0.1:80": false, "0.0.0.0:80": false, "169.254.169.254:80": false, "172.16.0.1:80": false,
		"192.168.1.1:80": false, "100.64.0.1:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false, "198.18.0.1:80": false,
		"[::1]:80": false, "[::]:80": false, "[fe80::1%lo]:80": false, "[fd00::2]:80": false, "[::ffff:127.0.0.1]:80": false,
		"[64:ff9b::7f00:1]:80": false, "[2002:7f00:1::]:80": false, "[::7f00:1]:80": false, "[ff02::1]:80": false, "[fec0::1]:80": false,
		"localhost:80": false, "": false,
	} {
		if err := h.mayDial(address, false); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := h.mayDial("127.0.0.1:80", true); err != nil {
		t.Errorf("private addresses are allowed: %v", err)
	}
}
