package main

import "maps"

// customers are the demo customers that every store of a case begins with.
var customers = []string{"CUST-00001", "CUST-00002", "CUST-00003"}

// environment is a server's: the store's, the usual settings, then what the
// case adds, each layer over the one before.
func environment(layers ...map[string]string) map[string]string {
	env := map[string]string{"TOOLSETS": "all"}
	for _, l := range layers {
		maps.Copy(env, l)
	}
	return env
}
